"""How the trainer waits: on many doorbells at once, or on one of them, and never past the rest.

    all ──┬── doorbell, doorbell, …        edge-triggered: a ring needs no read to be quiet again
          └── control ── channels, watchdog        one ─┬─ a doorbell
                                                        └─ control

A batch that wants every env is not waited for ring by ring: each wake-up costs more than the
work it brings. It waits for one env after the other, and mostly the first wait outlasts all
others. Rule: whatever is waited for, the control descriptors end the wait.
"""

from __future__ import annotations

import selectors
import sys
from typing import Any

from sc2pool.pool.ipc import doorbell
from sc2pool.pool.ipc.doorbell import Doorbell

if sys.platform == "linux":
    import select


class Waiter:
    """Waits on doorbells and sockets together; answers with the tags they were added under."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._bells: dict[int, Doorbell] = {}
        self._has_epoll = doorbell.USE_EVENTFD
        if self._has_epoll:
            self._control = select.epoll()
            self._all = select.epoll()
            self._all.register(self._control.fileno(), select.EPOLLIN)
            self._one: dict[int, select.epoll] = {}
        else:
            self._selector = selectors.DefaultSelector()

    def add_bell(self, bell: Doorbell, tag: Any) -> None:
        """Listen to a doorbell."""
        self._tags[bell.listening] = tag
        self._bells[bell.listening] = bell
        if self._has_epoll:
            self._all.register(bell.listening, select.EPOLLIN | select.EPOLLET)
            one = self._one[bell.listening] = select.epoll()
            one.register(bell.listening, select.EPOLLIN | select.EPOLLET)
            one.register(self._control.fileno(), select.EPOLLIN)
        else:
            self._selector.register(bell.listening, selectors.EVENT_READ)

    def add(self, descriptor: int, tag: Any) -> None:
        """Watch a socket or pipe for data and for its end."""
        self._tags[descriptor] = tag
        if self._has_epoll:
            self._control.register(descriptor, select.EPOLLIN)
        else:
            self._selector.register(descriptor, selectors.EVENT_READ)

    def remove(self, descriptor: int) -> None:
        """Neither listen to it nor watch it any more."""
        del self._tags[descriptor]
        is_bell = self._bells.pop(descriptor, None) is not None
        if not self._has_epoll:
            self._selector.unregister(descriptor)
        elif is_bell:
            self._all.unregister(descriptor)
            self._one.pop(descriptor).close()
        else:
            self._control.unregister(descriptor)

    def wait(self, timeout_s: float | None) -> list[Any]:
        """The tags of all that is ready, at the latest after `timeout_s` (None: no limit)."""
        tags = self._tags
        if self._has_epoll:
            control = self._control.fileno()
            ready = [fd for fd, _ in self._all.poll(-1 if timeout_s is None else timeout_s)]
            if control in ready:
                ready.remove(control)
                ready += [fd for fd, _ in self._control.poll(0)]
            return [tags[fd] for fd in ready]
        ready = [key.fd for key, _ in self._selector.select(timeout_s)]
        for descriptor in ready:
            if descriptor in self._bells:
                self._bells[descriptor].quiet()
        return [tags[descriptor] for descriptor in ready]

    def wait_for(self, bell: Doorbell, timeout_s: float) -> bool:
        """Wait for one doorbell; what other doorbells do is not noticed.

        Returns:
            Whether it alone has rung; else something wants `wait`, or the time is over. A ring
            from before may be told once more, so look, wait, and look again.
        """
        if not self._has_epoll:
            return False
        ready = self._one[bell.listening].poll(timeout_s)
        return len(ready) == 1 and ready[0][0] == bell.listening

    def close(self) -> None:
        """Give all descriptors back but the watched ones."""
        if self._has_epoll:
            for epoll in (*self._one.values(), self._all, self._control):
                epoll.close()
            self._one.clear()
        else:
            self._selector.close()
