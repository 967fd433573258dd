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

USE_EVENTFD = LINUX


class Doorbell:
    """One direction of waking: `ring` on one side, `fileno`/`quiet` on the other.

    Args:
        ringing: descriptor that `ring` writes; -1 if this process only listens.
        listening: descriptor that becomes readable, the same one for an eventfd; -1 if this
            process only rings.
    """

    def __init__(self, *, ringing: int = -1, listening: int = -1) -> None:
        self.ringing = ringing
        self.listening = listening

    @classmethod
    def create(cls) -> Doorbell:
        if LINUX and USE_EVENTFD:
            descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            return cls(ringing=descriptor, listening=descriptor)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        return cls(ringing=ours.detach(), listening=theirs.detach())

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


_ONE = (1).to_bytes(8, sys.byteorder)
