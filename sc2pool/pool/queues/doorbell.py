"""Doorbells: one process wakes another, or several with one system call.

A ring carries no data: the message is in the slot, under its sequence number. So a ring may be
early, late or double, and the reader checks the slot. On Linux a doorbell is an eventfd, watched
edge-triggered, so that no read is needed to reset it. Elsewhere it is a socket pair with one byte
per ring.

    common doorbell ─┬─► epoll of worker 0 ◄── request doorbell 0
                     └─► epoll of worker 1 ◄── request doorbell 1      a worker inherits its epoll

Ringing each worker costs a system call each, and the first worker to wake may take the trainer's
core while the others still sleep. So several workers share a common doorbell. Rules:
- A worker watches its epoll edge-triggered and reads nothing, because a read would reset the common
  doorbell for all workers.
- Common doorbells need eventfd and epoll, so they exist only on Linux. Elsewhere each doorbell is
  rung.
- A common doorbell also wakes workers without a request. So it is rung only if more than half of
  its members have one.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from sc2pool.platform import LINUX
from sc2pool.pool.ipc.channel import socket_pair

USE_EVENTFD = LINUX


class Doorbell:
    """One direction of waking: `ring` on one side, `fileno`/`quiet` on the other.

    Args:
        ringing: descriptor that `ring` writes. -1 if this process only listens.
        listening: descriptor that becomes readable, for an eventfd the same one. -1 if this
            process only rings. This object owns both descriptors.
    """

    def __init__(self, *, ringing: int = -1, listening: int = -1) -> None:
        self.ringing = ringing
        self.listening = listening

    @classmethod
    def create(cls) -> Doorbell:
        if LINUX and USE_EVENTFD:
            descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            return cls(ringing=descriptor, listening=descriptor)
        listening, ringing = socket_pair()
        return SocketDoorbell(ringing=ringing.detach(), listening=listening.detach())

    @staticmethod
    def inherited(*, ringing: int = -1, listening: int = -1) -> Doorbell:
        """A doorbell from descriptors that this process has inherited."""
        kind = Doorbell if USE_EVENTFD else SocketDoorbell
        return kind(ringing=ringing, listening=listening)

    def ring(self) -> None:
        """Wake the listener. A full buffer is ignored, because earlier rings will wake it."""
        try:  # noqa: SIM105 - runs in each step, and `suppress` costs as much as the system call
            os.write(self.ringing, _ONE)
        except BlockingIOError:
            pass

    def quiet(self) -> None:
        """Consume all rings so far; needed only for level-triggered waits."""
        with suppress(BlockingIOError):
            os.read(self.listening, 8)

    def close(self) -> None:
        os.close(self.ringing)
        if self.listening != self.ringing:
            os.close(self.listening)


class SocketDoorbell(Doorbell):
    """A doorbell on a socket pair: Windows accepts its descriptors only in socket calls."""

    def __init__(self, *, ringing: int = -1, listening: int = -1) -> None:
        super().__init__(ringing=ringing, listening=listening)
        self._ends = {end: socket.socket(fileno=end) for end in (ringing, listening) if end >= 0}
        for end in self._ends.values():
            end.setblocking(False)

    def ring(self) -> None:
        with suppress(BlockingIOError):
            self._ends[self.ringing].send(b"\1")

    def quiet(self) -> None:
        with suppress(BlockingIOError):
            self._ends[self.listening].recv(_MOST_RINGS)

    def close(self) -> None:
        for end in self._ends.values():
            end.close()


_ONE = (1).to_bytes(8, sys.byteorder)
_MOST_RINGS = 4096
"""Rings consumed per read. The wait is level-triggered, so further rings only wake once more."""


if LINUX:
    import select

_MOST_ENVS = 8
"""How many envs may share one doorbell. A worker has a few epolls and one for each game, and Linux
allows 50 wakeup paths of that depth from one descriptor (`reverse_path_check`)."""


def most_members(envs_per_worker: int) -> int:
    """How many workers may share one common doorbell."""
    return max(1, _MOST_ENVS // envs_per_worker)


class CommonDoorbells:
    """The common doorbells of a pool.

    Args:
        envs_per_worker: how many envs may live in one worker.
    """

    def __init__(self, envs_per_worker: int) -> None:
        self._most_members = most_members(envs_per_worker)
        self._groups: list[tuple[Doorbell, list[Doorbell]]] = []

    @contextmanager
    def joined(self, own: Doorbell) -> Iterator[int]:
        """A descriptor for a new worker to inherit: it watches its own doorbell and a common one.

        Args:
            own: the worker's request doorbell. Call `leave` with it when the worker is gone.
        """
        if LINUX and USE_EVENTFD:
            with closing(select.epoll()) as epoll:
                for heard in (own, self._with_room(own)):
                    epoll.register(heard.listening, select.EPOLLIN | select.EPOLLET)
                yield epoll.fileno()
        else:
            yield own.listening

    def _with_room(self, own: Doorbell) -> Doorbell:
        """A common doorbell with room, to whose members `own` is added."""
        for common, members in self._groups:
            if len(members) < self._most_members:
                members.append(own)
                return common
        common = Doorbell.create()
        self._groups.append((common, [own]))
        return common

    def leave(self, own: Doorbell) -> None:
        """Remove the doorbell of a worker that is gone; no error if it never joined."""
        for common, members in self._groups:
            if own in members:
                members.remove(own)
                if not members:
                    self._groups.remove((common, members))
                    common.close()
                return

    def fewest(self, doorbells: Iterable[Doorbell]) -> Sequence[Doorbell]:
        """The fewest doorbells to ring to wake all of these; valid until one joins or leaves."""
        asked = dict.fromkeys(doorbells)
        fewest: list[Doorbell] = []
        for common, members in self._groups:
            those = [doorbell for doorbell in members if doorbell in asked]
            if len(those) > 1 and 2 * len(those) > len(members):
                fewest.append(common)
                for doorbell in those:
                    del asked[doorbell]
        return [*fewest, *asked]
