"""How the trainer waits: on many doorbells at once, or on one of them, and never past the rest.

    all ──┬── doorbell, doorbell, …        edge-triggered: a ring needs no read to be quiet again
          └── control ── channels, watchdog        one ─┬─ a doorbell
                                                        └─ control

A batch that wants every env is not waited for ring by ring: each wake-up costs more than the
work it brings. It waits for one env after the other, and mostly the first wait outlasts all
others. Rule: the control descriptors end every wait.
"""

from __future__ import annotations

import selectors
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from sc2pool.deadline import Deadline
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.pool.queues import doorbell
from sc2pool.pool.queues.doorbell import Doorbell

if LINUX:
    import select


_INTERRUPTED_S: Final = 0.1
"""On Windows: how long a Ctrl-C may wait."""


class Waiter(ABC):
    """Waits on doorbells and sockets together; answers with the tags they were added under."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._doorbells: dict[int, Doorbell] = {}
        """Those that have to be quieted after a ring."""

    @staticmethod
    def create() -> Waiter:
        """The one that fits the doorbells of this system."""
        if LINUX and doorbell.USE_EVENTFD:
            return EpollWaiter()
        return SelectorWaiter()

    def add_doorbell(self, doorbell: Doorbell, tag: Any) -> None:
        """Listen to a doorbell."""
        self._doorbells[doorbell.listening] = doorbell
        self.add(doorbell.listening, tag)

    @abstractmethod
    def add(self, descriptor: int, tag: Any) -> None:
        """Watch a socket or pipe for data and for its end."""

    def retag(self, descriptor: int, tag: Any) -> None:
        """Answer with another tag for what is watched already."""
        self._tags[descriptor] = tag

    @abstractmethod
    def remove(self, descriptor: int) -> None:
        """Neither listen to it nor watch it any more, if it is known at all."""

    def _answer(self, ready: list[int]) -> list[Any]:
        """The tags of these descriptors, whose doorbells become quiet."""
        for descriptor in ready:
            if descriptor in self._doorbells:
                self._doorbells[descriptor].quiet()
        return [self._tags[descriptor] for descriptor in ready]

    @abstractmethod
    def wait(self, timeout_s: float | None) -> list[Any]:
        """The tags of all that is ready, at the latest after `timeout_s` (None: no limit)."""

    def wait_for(self, doorbell: Doorbell, timeout_s: float) -> bool:  # noqa: ARG002
        """Wait for one doorbell; a ring of another is not noticed.

        Returns:
            True if only this doorbell rang; otherwise call `wait`, or the time is over. A ring from
            before may be reported once more: so look, wait, and look again.
        """
        return False

    def has_more(self) -> bool:
        """True if anything that is no doorbell is ready, or may be; takes nothing."""
        return True

    def take_raised(self) -> tuple[BaseException, Any] | None:
        """The error of the user's code in the newest wait, and the tag of its instance.

        Always None but in a serial pool, whose waits run the user's code.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Give all descriptors back but the watched ones."""


if LINUX:

    class EpollWaiter(Waiter):
        """Eventfds, edge-triggered; a level-triggered epoll for all else is one of them."""

        def __init__(self, epoll: Callable[[], select.epoll] = select.epoll) -> None:
            super().__init__()
            self._epoll = epoll
            self._control = epoll()
            self._all = epoll()
            self._all.register(self._control.fileno(), select.EPOLLIN)
            self._one: dict[int, select.epoll] = {}

        def add_doorbell(self, doorbell: Doorbell, tag: Any) -> None:
            self._tags[doorbell.listening] = tag
            self._all.register(doorbell.listening, select.EPOLLIN | select.EPOLLET)
            one = self._one[doorbell.listening] = self._epoll()
            one.register(doorbell.listening, select.EPOLLIN | select.EPOLLET)
            one.register(self._control.fileno(), select.EPOLLIN)

        def add(self, descriptor: int, tag: Any) -> None:
            self._tags[descriptor] = tag
            self._control.register(descriptor, select.EPOLLIN)

        def remove(self, descriptor: int) -> None:
            self._tags.pop(descriptor, None)
            one = self._one.pop(descriptor, None)
            if one is not None:
                one.close()
            for epoll in (self._all, self._control):
                with suppress(OSError, ValueError):  # it was not registered here, or is closed
                    epoll.unregister(descriptor)

        def wait(self, timeout_s: float | None) -> list[Any]:
            tags = self._tags
            control = self._control.fileno()
            ready = [fd for fd, _ in self._all.poll(-1 if timeout_s is None else timeout_s)]
            if control in ready:
                ready.remove(control)
                ready += [fd for fd, _ in self._control.poll(0)]
            return [tags[fd] for fd in ready]

        def wait_for(self, doorbell: Doorbell, timeout_s: float) -> bool:
            ready = self._one[doorbell.listening].poll(timeout_s, 2)  # it watches no more than two
            return len(ready) == 1 and ready[0][0] == doorbell.listening

        def has_more(self) -> bool:
            return bool(self._control.poll(0))

        def close(self) -> None:
            for epoll in (*self._one.values(), self._all, self._control):
                epoll.close()
            self._one.clear()


class SelectorWaiter(Waiter):
    """Socket pairs, level-triggered; works on every system, and never waits for one doorbell."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()

    def add(self, descriptor: int, tag: Any) -> None:
        self._tags[descriptor] = tag
        self._selector.register(descriptor, selectors.EVENT_READ)

    def remove(self, descriptor: int) -> None:
        self._tags.pop(descriptor, None)
        self._doorbells.pop(descriptor, None)
        with suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)

    def wait(self, timeout_s: float | None) -> list[Any]:
        return self._answer([key.fd for key, _ in self._select(timeout_s)])

    def _select(self, timeout_s: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if not WINDOWS:
            return self._selector.select(timeout_s)
        deadline = Deadline.after(timeout_s)
        while True:  # a Ctrl-C does not end a wait there, so no wait is long
            ready = self._selector.select(min(_INTERRUPTED_S, deadline.remaining_s()))
            if ready or deadline.expired():
                return ready

    def close(self) -> None:
        self._selector.close()
