"""Doorbells: how one process wakes the other.

A ring carries no data; the message is in the slot, under its sequence number. So a ring may be
early, late or double, and the reader looks into the slot. Linux: an eventfd, watched
edge-triggered, which needs no read to be quiet again. Elsewhere: a socket pair, one byte a ring.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress

from sc2pool.platform import LINUX
from sc2pool.pool.ipc.channel import socket_pair

USE_EVENTFD = LINUX


class Doorbell:
    """One direction of waking: `ring` on one side, `fileno`/`quiet` on the other.

    Args:
        ringing: descriptor that `ring` writes; -1 if this process only listens.
        listening: descriptor that becomes readable, the same one for an eventfd; -1 if this
            process only rings. Both belong to this object from now on.
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
        """The ends that this process has got from another one."""
        kind = Doorbell if USE_EVENTFD else SocketDoorbell
        return kind(ringing=ringing, listening=listening)

    def ring(self) -> None:
        """Wake the listener. A full buffer is no error: it has been rung often enough."""
        try:  # noqa: SIM105 - on each step's path, and `suppress` costs as much as the system call
            os.write(self.ringing, _ONE)
        except BlockingIOError:
            pass

    def quiet(self) -> None:
        """Take all rings so far; needed only if the wait is level-triggered."""
        with suppress(BlockingIOError):
            os.read(self.listening, 8)

    def close(self) -> None:
        os.close(self.ringing)
        if self.listening != self.ringing:
            os.close(self.listening)


class SocketDoorbell(Doorbell):
    """The ends of a socket pair: on Windows only a socket's own calls take its descriptor."""

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
"""Taken at once; the wait is level-triggered, so more than that only wake once more."""
