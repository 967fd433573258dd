"""Doorbells, by which a process wakes one or more processes, and ways to wait for doorbells.

A ring carries no data, because the message is in the slot, with a sequence number. A ring may be
early, late or double, so the reader checks the slot. On Linux a doorbell is an eventfd that is
watched edge-triggered, so no read is needed to reset it. On other systems a doorbell is a socket
pair with one byte per ring.

To ring the workers one by one costs a system call for each. The first worker that wakes may also
take the trainer's core before the trainer has woken the other workers. So several workers share a
common doorbell. A worker inherits an epoll that watches its own request doorbell and the common
doorbell. Rules:
* A worker watches its epoll edge-triggered and reads nothing, because a read would reset the common
  doorbell for all workers.
* Common doorbells need eventfd and epoll, so they exist only on Linux. On other systems the trainer
  rings each worker's own doorbell.
* A common doorbell wakes all its members (the workers that share it), even those without a request.
  So the trainer rings a common doorbell only if more than half of its members have a request.

The trainer waits on all doorbells or on a single doorbell. In both cases it also waits on the
control descriptors (the channels and the watchdog). A control descriptor that is ready ends the
wait. For a batch of all envs the trainer does not wake at each ring, because a wake-up costs more
than the handling of a reply. The trainer waits for one env after the other, and usually only the
first wait is long.
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
    """Lets one process, which calls `ring`, wake another process, which watches `listening`.

    A doorbell owns two descriptors. `ring` writes to `ringing`, which makes `listening` readable.
    For an eventfd, `ringing` and `listening` are the same descriptor. In a process that only rings,
    `listening` is -1. In a process that only listens, `ringing` is -1.
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
        """Wake the listener; if the buffer is full, earlier rings wake it."""
        try:  # noqa: SIM105 - runs in each step, and `suppress` costs as much as the system call
            os.write(self.ringing, _ONE)
        except BlockingIOError:
            pass

    def quiet(self) -> None:
        """Consume all rings so far; only level-triggered waits need this call."""
        with suppress(BlockingIOError):
            os.read(self.listening, 8)

    def close(self) -> None:
        os.close(self.ringing)
        if self.listening != self.ringing:
            os.close(self.listening)


class SocketDoorbell(Doorbell):
    """A doorbell made of a socket pair; it uses only socket calls, as Windows requires."""

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
"""The most rings that one read consumes; later rings end the next wait."""


if LINUX:
    import select

_MOST_ENVS = 8
"""The most envs that share one doorbell. Linux allows 50 wakeup paths from one descriptor to epolls
nested this deep (`reverse_path_check`). A worker has a few epolls, and one more for each game."""


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
        """Yield a descriptor for a new worker to inherit: an epoll on `own` and a common doorbell.

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
        """A common doorbell that has room for a further member; `own` becomes a member of it."""
        for common, members in self._groups:
            if len(members) < self._most_members:
                members.append(own)
                return common
        common = Doorbell.create()
        self._groups.append((common, [own]))
        return common

    def leave(self, own: Doorbell) -> None:
        """Remove the doorbell of an ended worker from its common doorbell, if it has one."""
        for common, members in self._groups:
            if own in members:
                members.remove(own)
                if not members:
                    self._groups.remove((common, members))
                    common.close()
                return

    def fewest(self, doorbells: Iterable[Doorbell]) -> Sequence[Doorbell]:
        """The fewest doorbells that wake all these workers; valid until members join or leave."""
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
"""The longest delay of a Ctrl-C on Windows, in seconds."""


class Waiter(ABC):
    """Waits on doorbells and sockets together, and returns the tags of those that are ready."""

    def __init__(self) -> None:
        self._tags: dict[int, Any] = {}
        self._doorbells: dict[int, Doorbell] = {}
        """The doorbells, by descriptor, that need a call of `quiet` after each ring."""

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
        """Change the tag of a descriptor that this waiter already watches."""
        self._tags[descriptor] = tag

    @abstractmethod
    def remove(self, descriptor: int) -> None:
        """Stop watching a descriptor; a descriptor that is not watched is no error."""

    def _answer(self, ready: list[int]) -> list[Any]:
        """Call `quiet` of the doorbells among these descriptors; return all descriptors' tags."""
        for descriptor in ready:
            if descriptor in self._doorbells:
                self._doorbells[descriptor].quiet()
        return [self._tags[descriptor] for descriptor in ready]

    @abstractmethod
    def wait(self, timeout_s: float | None) -> list[Any]:
        """Wait, and return the tags of ready descriptors; [] after `timeout_s` (None: no limit)."""

    def wait_for(self, doorbell: Doorbell, timeout_s: float) -> bool:  # noqa: ARG002
        """Wait for one doorbell; rings of other doorbells do not end this wait.

        Returns True if only this doorbell rang. If the result is False (after a timeout or another
        event), call `wait`. An old ring may be reported again, so check the slot before and after a
        call.
        """
        return False

    def has_more(self) -> bool:
        """True if a channel or the watchdog may be ready; no event is consumed."""
        return True

    def take_raised(self) -> tuple[BaseException, Any] | None:
        """Return and forget the user code's error in the newest wait, with its instance's tag.

        In a pool that is not serial this is None, because its waits run no user code.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the waiter's own descriptors; the watched descriptors belong to the caller."""


if LINUX:

    class EpollWaiter(Waiter):
        """Watches eventfds edge-triggered, and all other descriptors in a level-triggered epoll."""

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
                with suppress(OSError, ValueError):  # the descriptor is closed or not in this epoll
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
            ready = self._one[doorbell.listening].poll(timeout_s, 2)  # the epoll has 2 descriptors
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
