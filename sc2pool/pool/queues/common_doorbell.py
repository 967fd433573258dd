"""Common doorbells: how the trainer wakes several workers with one system call.

    common doorbell ─┬─► epoll of worker 0 ◄── request doorbell 0
                     └─► epoll of worker 1 ◄── request doorbell 1      a worker inherits its epoll

To ring one worker after the other costs a system call each, and the first that wakes takes the
trainer's core while the others still sleep. Rules: a worker waits for its epoll as for a doorbell,
edge-triggered, and reads nothing, because a read would make the doorbell quiet for all. Only Linux
has what that needs; elsewhere each doorbell is rung. A common doorbell also wakes workers that
nothing was sent to, so it is rung only for more than half of those that hear it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from sc2pool.platform import LINUX
from sc2pool.pool.queues import doorbell
from sc2pool.pool.queues.doorbell import Doorbell

if LINUX:
    import select

_MOST_ENVS = 8
"""Behind one doorbell: a worker has a few epolls and one for each game, and the system allows 50
that lead away from one descriptor at that depth (`reverse_path_check` in Linux)."""


def most_members(envs_per_worker: int) -> int:
    """How many workers may hear one doorbell."""
    return max(1, _MOST_ENVS // envs_per_worker)


class CommonDoorbells:
    """The common doorbells of a pool.

    Args:
        envs_per_worker: how many envs may share one.
    """

    def __init__(self, envs_per_worker: int) -> None:
        self._most_members = most_members(envs_per_worker)
        self._groups: list[tuple[Doorbell, list[Doorbell]]] = []

    @contextmanager
    def joined(self, own: Doorbell) -> Iterator[int]:
        """A descriptor that a new worker inherits to hear its own doorbell and a common one.

        Args:
            own: of the worker; `leave` when it is gone.
        """
        if LINUX and doorbell.USE_EVENTFD:
            with closing(select.epoll()) as epoll:
                for heard in (own, self._with_room(own)):
                    epoll.register(heard.listening, select.EPOLLIN | select.EPOLLET)
                yield epoll.fileno()
        else:
            yield own.listening

    def _with_room(self, own: Doorbell) -> Doorbell:
        """A common doorbell, with this one among its members."""
        for common, members in self._groups:
            if len(members) < self._most_members:
                members.append(own)
                return common
        common = Doorbell.create()
        self._groups.append((common, [own]))
        return common

    def leave(self, own: Doorbell) -> None:
        """Forget this doorbell, as its worker is gone. One that has not joined changes nothing."""
        for common, members in self._groups:
            if own in members:
                members.remove(own)
                if not members:
                    self._groups.remove((common, members))
                    common.close()
                return

    def fewest(self, doorbells: Iterable[Doorbell]) -> Sequence[Doorbell]:
        """The fewest doorbells that wake all of these; valid until a doorbell joins or leaves."""
        asked = dict.fromkeys(doorbells)
        fewest: list[Doorbell] = []
        for common, members in self._groups:
            those = [doorbell for doorbell in members if doorbell in asked]
            if len(those) > 1 and 2 * len(those) > len(members):
                fewest.append(common)
                for doorbell in those:
                    del asked[doorbell]
        return [*fewest, *asked]
