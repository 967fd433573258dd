"""Common bells: how the trainer wakes several workers with one system call.

    common bell ─┬─► epoll of worker 0 ◄── request bell 0
                 └─► epoll of worker 1 ◄── request bell 1      a worker inherits its epoll

To ring one worker after the other costs a system call each, and the first that wakes takes the
trainer's core while the others still sleep. Rules: a worker waits for its epoll as for a doorbell,
edge-triggered, and reads nothing, because a read would make the bell quiet for all; only Linux has
what that needs, elsewhere each bell is rung. A common bell also wakes workers that nothing was sent
to, so it is rung only for more than half of those that hear it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

from sc2pool.pool.queues import doorbell
from sc2pool.pool.queues.doorbell import Doorbell

if sys.platform == "linux":
    import select

_MOST_ENVS = 8
"""Behind one bell: a worker has a few epolls and one for each game, and the system allows 50 that
lead away from one descriptor at that depth (`reverse_path_check` in Linux)."""


def most_members(envs_per_worker: int) -> int:
    """How many workers may hear one bell."""
    return max(1, _MOST_ENVS // envs_per_worker)


class Bell(Protocol):
    """What can be rung."""

    def ring(self) -> None: ...


class CommonBells:
    """The common bells of a pool.

    Args:
        envs_per_worker: how many envs may share one.
    """

    def __init__(self, envs_per_worker: int) -> None:
        self._most_members = most_members(envs_per_worker)
        self._groups: list[tuple[Doorbell, list[Doorbell]]] = []

    @contextmanager
    def joined(self, bell: Doorbell) -> Iterator[int]:
        """A descriptor that a new worker inherits to hear its own bell and a common one.

        Args:
            bell: its own; `leave` when it is gone.
        """
        if sys.platform == "linux" and doorbell.USE_EVENTFD:
            with closing(select.epoll()) as epoll:
                for heard in (bell, self._with_room(bell)):
                    epoll.register(heard.listening, select.EPOLLIN | select.EPOLLET)
                yield epoll.fileno()
        else:
            yield bell.listening

    def _with_room(self, bell: Doorbell) -> Doorbell:
        """A common bell, with this one among its members."""
        for common, members in self._groups:
            if len(members) < self._most_members:
                members.append(bell)
                return common
        common = Doorbell.create()
        self._groups.append((common, [bell]))
        return common

    def leave(self, bell: Doorbell) -> None:
        """Forget this bell, as its worker is gone. One that has not joined changes nothing."""
        for common, members in self._groups:
            if bell in members:
                members.remove(bell)
                if not members:
                    self._groups.remove((common, members))
                    common.close()
                return

    def fewest(self, bells: Iterable[Doorbell]) -> Sequence[Bell]:
        """What to ring for all of these to be heard; good until a bell joins or leaves."""
        asked = dict.fromkeys(bells)
        fewest: list[Bell] = []
        for common, members in self._groups:
            those = [bell for bell in members if bell in asked]
            if len(those) > 1 and 2 * len(those) > len(members):
                fewest.append(common)
                for bell in those:
                    del asked[bell]
        return [*fewest, *asked]
