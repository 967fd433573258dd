"""The trainer's waits: on all doorbells, or on one doorbell and the control descriptors.

    all ──┬── doorbell, doorbell, …        edge-triggered: no read is needed to reset a doorbell
          └── control ── channels, watchdog        one ─┬─ a doorbell
                                                        └─ control

For a batch of all envs the trainer does not wake at each ring, because a wake-up costs more than
handling a reply. It waits for one env after the other, and the first wait is usually the longest.
Rule: the control descriptors end every wait.
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
"""The longest delay of a Ctrl-C on Windows."""


class Waiter(ABC):
    """Waits on doorbells and sockets together; returns the tags of those that are ready."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._doorbells: dict[int, Doorbell] = {}
        """Doorbells to call `quiet` on after a ring, by descriptor."""

    @staticmethod
    def create() -> Waiter:
        """A waiter for this system's kind of doorbells."""
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
        """Change the tag of a descriptor that is watched already."""
        self._tags[descriptor] = tag

    @abstractmethod
    def remove(self, descriptor: int) -> None:
        """Unregister a descriptor; no error if it is unknown."""

    def _answer(self, ready: list[int]) -> list[Any]:
        """Quiet the doorbells among these descriptors, and return the tags of all of them."""
        for descriptor in ready:
            if descriptor in self._doorbells:
                self._doorbells[descriptor].quiet()
        return [self._tags[descriptor] for descriptor in ready]

    @abstractmethod
    def wait(self, timeout_s: float | None) -> list[Any]:
        """Wait until something is ready; return the tags of all that is.

        The list is empty if `timeout_s` has passed (None: no limit).
        """

    def wait_for(self, doorbell: Doorbell, timeout_s: float) -> bool:  # noqa: ARG002
        """Wait for one doorbell; rings of other doorbells do not end this wait.

        Returns:
            True if only this doorbell rang. False on a timeout or another event: then call `wait`.
            An old ring may be reported again, so check the slot before and after this wait.
        """
        return False

    def has_more(self) -> bool:
        """True if a channel or the watchdog is, or may be, ready. Consumes nothing."""
        return True

    def take_raised(self) -> tuple[BaseException, Any] | None:
        """Take the error that the user's code raised in the newest wait, and its instance's tag.

        None except in a serial pool, whose waits run the user's code.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the waiter's own descriptors; the caller owns the watched ones."""


if LINUX:

    class EpollWaiter(Waiter):
        """Watches eventfds edge-triggered, and all else through a nested, level-triggered epoll."""

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
            ready = self._one[doorbell.listening].poll(timeout_s, 2)  # it watches two descriptors
            return len(ready) == 1 and ready[0][0] == doorbell.listening

        def has_more(self) -> bool:
            return bool(self._control.poll(0))

        def close(self) -> None:
            for epoll in (*self._one.values(), self._all, self._control):
                epoll.close()
            self._one.clear()


class SelectorWaiter(Waiter):
    """Watches socket pairs, level-triggered. Works on every system.

    `wait_for` always returns False, so the caller falls back to `wait`.
    """

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
        while True:  # on Windows a Ctrl-C does not end a wait, so each wait is short
            ready = self._selector.select(min(_INTERRUPTED_S, deadline.remaining_s()))
            if ready or deadline.expired():
                return ready

    def close(self) -> None:
        self._selector.close()
