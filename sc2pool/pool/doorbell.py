"""Doorbells: how one process wakes the other, and how one waits on many at once.

A ring carries nothing; what is to be read lies in the slot, under its sequence number. So a ring
may be early, late or double, and the reader looks into the slot. Linux: an eventfd, watched
edge-triggered, which needs no read to be quiet again. Elsewhere: a socket pair, one byte a ring.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from contextlib import suppress
from typing import Any

if sys.platform == "linux":
    import select

USE_EVENTFD = sys.platform == "linux"


class Doorbell:
    """One direction of waking: `ring` on one side, `fileno`/`quiet` on the other.

    Args:
        ringing: descriptor that `ring` writes; -1 where this process only listens.
        listening: descriptor that becomes readable, the same one for an eventfd; -1 where this
            process only rings.
    """

    def __init__(self, *, ringing: int = -1, listening: int = -1) -> None:
        self.ringing = ringing
        self.listening = listening

    @classmethod
    def create(cls) -> Doorbell:
        if USE_EVENTFD:
            descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            return cls(ringing=descriptor, listening=descriptor)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        return cls(ringing=ours.detach(), listening=theirs.detach())

    def ring(self) -> None:
        """Wake the listener. A full buffer is no error: it has been rung often enough."""
        with suppress(BlockingIOError):
            os.write(self.ringing, _ONE)

    def quiet(self) -> None:
        """Take all rings so far; needed only where the wait is level-triggered."""
        with suppress(BlockingIOError):
            os.read(self.listening, 8)

    def close(self) -> None:
        os.close(self.ringing)
        if self.listening != self.ringing:
            os.close(self.listening)


_ONE = (1).to_bytes(8, sys.byteorder)


class Waiter:
    """Waits on doorbells and sockets together; answers with the tags they were added under."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._bells: dict[int, Doorbell] = {}
        if USE_EVENTFD:
            self._epoll = select.epoll()
        else:
            self._selector = selectors.DefaultSelector()

    def add_bell(self, bell: Doorbell, tag: Any) -> None:
        self._tags[bell.listening] = tag
        self._bells[bell.listening] = bell
        if USE_EVENTFD:
            self._epoll.register(bell.listening, select.EPOLLIN | select.EPOLLET)
        else:
            self._selector.register(bell.listening, selectors.EVENT_READ)

    def add(self, descriptor: int, tag: Any) -> None:
        """Watch a socket or pipe for data and for its end."""
        self._tags[descriptor] = tag
        if USE_EVENTFD:
            self._epoll.register(descriptor, select.EPOLLIN)
        else:
            self._selector.register(descriptor, selectors.EVENT_READ)

    def remove(self, descriptor: int) -> None:
        del self._tags[descriptor]
        self._bells.pop(descriptor, None)
        if USE_EVENTFD:
            self._epoll.unregister(descriptor)
        else:
            self._selector.unregister(descriptor)

    def wait(self, timeout_s: float | None) -> list[Any]:
        """The tags of all that is ready, at the latest after `timeout_s` (None: no limit)."""
        tags = self._tags
        if USE_EVENTFD:
            timeout = -1 if timeout_s is None else timeout_s
            return [tags[descriptor] for descriptor, _ in self._epoll.poll(timeout)]
        ready = [key.fd for key, _ in self._selector.select(timeout_s)]
        for descriptor in ready:
            if descriptor in self._bells:
                self._bells[descriptor].quiet()
        return [tags[descriptor] for descriptor in ready]

    def close(self) -> None:
        if USE_EVENTFD:
            self._epoll.close()
        else:
            self._selector.close()
