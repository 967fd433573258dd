"""Doorbells, by which one process wakes another (or several at once), and waits for doorbells.

A ring carries no data: the message is in the slot, under its sequence number. A ring may be early,
late or double, so the reader checks the slot. On Linux a doorbell is an eventfd, watched
edge-triggered, so that no read is needed to reset it. Elsewhere it is a socket pair with one byte
per ring.

    common doorbell ─┬─► epoll of worker 0 ◄── request doorbell 0
                     └─► epoll of worker 1 ◄── request doorbell 1      a worker inherits its epoll

Ringing the workers one by one costs a system call for each, and the first worker to wake may take
the trainer's core before the others are woken. So several workers share a common doorbell. Rules:
* A worker watches its epoll edge-triggered and reads nothing, because a read would reset the common
  doorbell for all workers.
* Common doorbells need eventfd and epoll, so they exist only on Linux. Elsewhere each worker's own
  doorbell is rung.
* A common doorbell wakes all its members (the workers that share it), even those without a request.
  So it is rung only if more than half of its members have a request.

The trainer waits on all doorbells, or on one doorbell and the control descriptors:

    all ──┬── doorbell, doorbell, …        edge-triggered: no read is needed to reset a doorbell
          └── control ── channels, watchdog        one ─┬─ a doorbell
                                                        └─ control

For a batch of all envs the trainer does not wake at each ring, because a wake-up costs more than
handling a reply. It waits for one env after the other; usually only the first wait is long. Rule:
a control descriptor that is ready ends every wait.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from sc2pool.deadline import Deadline
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.pool.ipc import socket_pair

USE_EVENTFD = LINUX


class Doorbell:
    """Lets one process wake another: the first calls `ring`, the other watches `listening`.

    This object owns both descriptors: `ring` writes to `ringing`, which makes `listening` readable.
    One eventfd serves as both. In a process that only rings or only listens, the other is -1.
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
        """Wake the listener. A full buffer is ignored, because earlier rings wake the listener."""
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
    """A doorbell on a socket pair; uses only socket calls, because Windows requires them."""

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
"""The most rings that one read consumes. Any further rings end the next, level-triggered wait."""


if LINUX:
    import select

_MOST_ENVS = 8
"""How many envs may share one doorbell. Linux allows 50 wakeup paths of this depth from one
descriptor (`reverse_path_check`), and a worker has a few epolls and one more for each game."""


def most_members(envs_per_worker: int) -> int:
    """How many workers may share one common doorbell."""
    return max(1, _MOST_ENVS // envs_per_worker)


class CommonDoorbells:
    """The common doorbells of a pool with at most `envs_per_worker` envs in a worker."""

    def __init__(self, envs_per_worker: int) -> None:
        self._most_members = most_members(envs_per_worker)
        self._groups: list[tuple[Doorbell, list[Doorbell]]] = []

    @contextmanager
    def joined(self, own: Doorbell) -> Iterator[int]:
        """A descriptor for a new worker to inherit: an epoll on `own` and a common doorbell.

        `own` is the worker's request doorbell. Call `leave(own)` when the worker has ended.
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
        """Remove the doorbell of a worker that has ended; no error if it never joined."""
        for common, members in self._groups:
            if own in members:
                members.remove(own)
                if not members:
                    self._groups.remove((common, members))
                    common.close()
                return

    def fewest(self, doorbells: Iterable[Doorbell]) -> Sequence[Doorbell]:
        """The fewest doorbells to ring for all of `doorbells`; valid until one joins or leaves."""
        asked = dict.fromkeys(doorbells)
        fewest: list[Doorbell] = []
        for common, members in self._groups:
            those = [doorbell for doorbell in members if doorbell in asked]
            if len(those) > 1 and 2 * len(those) > len(members):
                fewest.append(common)
                for doorbell in those:
                    del asked[doorbell]
        return [*fewest, *asked]


_INTERRUPTED_S: Final = 0.1
"""The longest delay of a Ctrl-C on Windows."""


class Waiter(ABC):
    """Waits on doorbells and sockets together; returns the tags of those that are ready."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._doorbells: dict[int, Doorbell] = {}
        """The doorbells that need a call of `quiet` after each ring, by descriptor."""

    @staticmethod
    def create() -> Waiter:
        """A waiter for the kind of doorbells that this operating system has."""
        if LINUX and USE_EVENTFD:
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
        """Call `quiet` of the doorbells among these descriptors; return all descriptors' tags."""
        for descriptor in ready:
            if descriptor in self._doorbells:
                self._doorbells[descriptor].quiet()
        return [self._tags[descriptor] for descriptor in ready]

    @abstractmethod
    def wait(self, timeout_s: float | None) -> list[Any]:
        """Wait, and return the tags of all that is ready; [] after `timeout_s` (None: no limit)."""

    def wait_for(self, doorbell: Doorbell, timeout_s: float) -> bool:  # noqa: ARG002
        """Wait for one doorbell; rings of other doorbells do not end this wait.

        Returns True if only this doorbell rang. After a timeout or another event it returns False;
        then call `wait`. An old ring may be reported again: check the slot before and after a call.
        """
        return False

    def has_more(self) -> bool:
        """True if a channel or the watchdog may be ready. Consumes no event."""
        return True

    def take_raised(self) -> tuple[BaseException, Any] | None:
        """Take the error that the user's code raised in the newest wait, and its instance's tag.

        Always None unless the pool is serial, because only a serial pool's waits run user code.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the waiter's own descriptors; the caller owns the watched ones."""


if LINUX:

    class EpollWaiter(Waiter):
        """Watches eventfds edge-triggered; a nested, level-triggered epoll watches all else."""

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
                with suppress(OSError, ValueError):  # not registered here, or closed
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
            ready = self._one[doorbell.listening].poll(timeout_s, 2)  # two descriptors are watched
            return len(ready) == 1 and ready[0][0] == doorbell.listening

        def has_more(self) -> bool:
            return bool(self._control.poll(0))

        def close(self) -> None:
            for epoll in (*self._one.values(), self._all, self._control):
                epoll.close()
            self._one.clear()


class SelectorWaiter(Waiter):
    """Watches socket pairs, level-triggered, on every system; `wait_for` always returns False."""

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
        while True:  # each wait is short, because on Windows a Ctrl-C does not end a wait
            ready = self._selector.select(min(_INTERRUPTED_S, deadline.remaining_s()))
            if ready or deadline.expired():
                return ready

    def close(self) -> None:
        self._selector.close()
