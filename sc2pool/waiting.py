"""Two ways to wait for a descriptor more cheaply than asyncio does.

A worker with one env does one thing at a time: it waits for an action, or for the game's answer.
For each wait, asyncio needs a future, a callback and a pass over its queues. This overhead of
asyncio takes several times as long as the system call. In a `WorkerLoop` the waiting task may block
the thread without asyncio (`BlockingWait`). With several envs, the tasks take turns (`Turns`): one
wait for all tasks blocks the thread, and the ready tasks continue one after the other.

A wait also watches the loop's own epoll descriptor. So the wait ends when any other descriptor of
the loop is ready, and the caller then waits through asyncio. A loop is never blocked if it has
other tasks than the worker's, such as a task that the user's code started. A loop without epoll
(not on Linux) is never blocked either.
"""

from __future__ import annotations

import asyncio
import math
import select
import selectors
import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import cached_property
from typing import Any, TypeVar

from sc2pool.platform import LINUX

_T = TypeVar("_T")

_POLL_INTERVAL_S = 0.1
"""The time in seconds between two checks of the deadlines while tasks take turns."""
_BACK_AFTER_S = 0.02
"""How long tasks take turns before asyncio handles its timers and other descriptors."""
_MOST_READY = 2
"""The number of descriptors in a `BlockingWait`; epoll's default is a thousand."""


def run_in_selector_loop(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """`asyncio.run` with a selector loop, because Windows' own loop cannot watch descriptors."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(coroutine)


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that its tasks may block.

    Attributes:
        tasks: the number of tasks that are alive.
        in_line: the number of tasks that wait for a `Turn`.
        own_tasks: the most tasks with which the loop may be blocked; 0 if it may never be blocked.
        descriptor: a descriptor that is readable while the loop has data to read; -1 without epoll.
        turns: the waits of tasks that may not block the loop; None without epoll.
    """

    def __init__(self, own_tasks: int) -> None:
        self.own_tasks = own_tasks
        self.descriptor = -1
        self.tasks = 0
        self.in_line = 0
        if LINUX:
            selector = selectors.EpollSelector()
            self.descriptor = selector.fileno()
            super().__init__(selector)
        else:
            super().__init__()
        self.set_task_factory(self._make_task)

    @cached_property
    def turns(self) -> Turns | None:
        return Turns(self) if LINUX else None

    def close(self) -> None:
        turns = vars(self).get("turns")
        if turns is not None:
            turns.close()
        super().close()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **keywords: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **keywords)
        self.count_in(task)
        return task

    def count_in(self, task: asyncio.Task[Any]) -> None:
        """Count a task until it is done; `create_task` calls this method."""
        self.tasks += 1
        task.add_done_callback(self._count_out)

    def _count_out(self, _: asyncio.Task[Any]) -> None:
        self.tasks -= 1


class BlockingWait:
    """Waits for new data of one descriptor. Read older data first: old data do not end a wait."""

    def __init__(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self.loop: WorkerLoop | None = None
        """The running loop; None if it may never be blocked."""
        self.epoll = -1
        """The descriptor of the epoll; -1 before the first wait."""
        self._descriptor = descriptor
        self._epoll: Any = None  # made at the first wait, because an epoll costs time
        if LINUX and isinstance(loop, WorkerLoop):
            self.loop = loop

    @property
    def possible(self) -> bool:
        """True if the running loop may be blocked now."""
        loop = self.loop
        return loop is not None and loop.tasks <= loop.own_tasks

    def wait(self, timeout_s: float = -1) -> bool:
        """If `possible`, block until there are data, for at most `timeout_s` (negative: no limit).

        Returns True if only this descriptor is ready, or False if the loop has other work or the
        time is over.
        """
        loop = self.loop
        if not LINUX or loop is None or loop.tasks > loop.own_tasks:
            return False
        if self._epoll is None:
            self._epoll = select.epoll()
            self.epoll = self._epoll.fileno()
            self._epoll.register(self._descriptor, select.EPOLLIN | select.EPOLLET)
            self._epoll.register(loop.descriptor, select.EPOLLIN)
        ready = self._epoll.poll(timeout_s, _MOST_READY)
        return len(ready) == 1 and ready[0][0] == self._descriptor

    def close(self) -> None:
        """Close the epoll; the caller owns the watched descriptor."""
        if self._epoll is not None:
            self._epoll.close()


class Turn:
    """A reusable event; a task awaits it until `go_on` is called.

    The event has the interface that asyncio's tasks expect of a future. The task continues inside
    `go_on`, not in the loop's next pass, and a wait needs no new future.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._worker = loop if isinstance(loop, WorkerLoop) else None
        self._asyncio_future_blocking = False  # asyncio's tasks accept objects with this attribute
        self._task: tuple[Callable[[Any], object], Context] | None = None
        self._is_due = False
        self._is_cancelled = False
        self._in_time = True
        self.deadline_s = math.inf

    @property
    def is_awaited(self) -> bool:
        """True if a task waits."""
        return self._task is not None

    def go_on(self, *, in_time: bool = True) -> None:
        """Run the task to its next wait; its `await` returns `in_time`. No task may call this."""
        if self._task is not None:
            (call, context), self._task = self._task, None
            self._leave_line()
            self._is_due = False
            self._in_time = in_time
            context.run(call, self)

    def go_on_soon(self) -> None:
        """Schedule `go_on` for the loop's next pass; tasks may call this."""
        if self._task is not None and not self._is_due:
            self._leave_line()
            self._is_due = True
            self._loop.call_soon(self.go_on)

    def _leave_line(self) -> None:
        if self._worker is not None and not self._is_due:
            self._worker.in_line -= 1

    def __await__(self) -> Generator[Turn, None, bool]:
        self._asyncio_future_blocking = True
        yield self
        return self._in_time

    # Asyncio's tasks call the methods below.

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, call: Callable[[Any], object], *, context: Context) -> None:
        self._task = call, context
        if self._worker is not None:
            self._worker.in_line += 1

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's name
        """Raise a `CancelledError` in the task, in the loop's next pass."""
        if self._task is None:
            return False
        self._is_cancelled = True
        self.go_on_soon()
        return True

    def result(self) -> None:
        """Raise `CancelledError` if the task was cancelled."""
        if self._is_cancelled:
            self._is_cancelled = False
            raise asyncio.CancelledError


class Turns:
    """Lets several tasks wait for descriptors, by one wait of asyncio for all tasks; Linux only.

    If all tasks but the worker's own wait for a turn, the waiting tasks take turns without asyncio.
    """

    _epoll: Any
    _both: Any

    def __init__(self, loop: WorkerLoop) -> None:
        self._loop = loop
        self._called: dict[int, Callable[[], None]] = {}
        self._limited: set[Turn] = set()
        self._late: asyncio.TimerHandle | None = None
        self._in_pass = False
        self._at_end: list[Callable[[], None]] = []
        if not LINUX:
            raise NotImplementedError("only Linux has an epoll")
        self._epoll = select.epoll()
        self._both = select.epoll()
        self._both.register(self._epoll.fileno(), select.EPOLLIN)
        self._both.register(loop.descriptor, select.EPOLLIN)
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call `call` on new data of the descriptor (edge-triggered); `call` must read all data."""
        if not LINUX:
            raise NotImplementedError("only Linux has an epoll")
        self._called[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)

    def forget(self, descriptor: int) -> None:
        """Stop watching the descriptor; no error if it is not watched."""
        if self._called.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _on_ready(self) -> None:
        """Take turns, and return to asyncio after `_BACK_AFTER_S` or when asyncio is needed."""
        own = self._epoll.fileno()
        back_at_s = time.monotonic() + _BACK_AFTER_S
        ready = [own]
        while own in ready:
            self._take_turns()
            left_s = back_at_s - time.monotonic()
            if left_s <= 0 or self._loop.tasks - self._loop.in_line >= self._loop.own_tasks:
                return
            ready = [descriptor for descriptor, _ in self._both.poll(left_s, _MOST_READY)]

    def _take_turns(self) -> None:
        self._in_pass = True
        try:
            for descriptor, _ in self._epoll.poll(0, max(1, len(self._called))):
                call = self._called.get(descriptor)
                if call is not None:  # an earlier callback in this pass may have called `forget`
                    call()
        finally:
            self._in_pass = False
            self._call_at_end()

    def at_end(self, call: Callable[[], None]) -> None:
        """Call `call` after all ready tasks have had their turn."""
        self._at_end.append(call)
        if not self._in_pass:
            self._loop.call_soon(self._call_at_end)  # a pass that ends earlier makes the calls

    def _call_at_end(self) -> None:
        at_end, self._at_end = self._at_end, []
        for call in at_end:
            call()

    def wait(self, turn: Turn, deadline_s: float) -> Turn:
        """Return the `turn`, with a deadline; the calling task awaits the `turn` until `go_on`.

        The await returns False if the monotonic time `deadline_s` has passed. A timer checks the
        deadline every `_POLL_INTERVAL_S`.
        """
        turn.deadline_s = deadline_s
        self._limited.add(turn)
        if self._late is None:
            self._late = self._loop.call_later(_POLL_INTERVAL_S, self._poll)
        return turn

    def _poll(self) -> None:
        """Check all deadlines by one timer; most waits end long before their deadlines."""
        now_s = time.monotonic()
        self._late = None
        self._limited = {turn for turn in self._limited if turn.is_awaited}
        for turn in [turn for turn in self._limited if now_s >= turn.deadline_s]:
            turn.go_on(in_time=False)
        if self._limited and self._late is None:
            self._late = self._loop.call_later(_POLL_INTERVAL_S, self._poll)

    def close(self) -> None:
        """Close the epolls; the callers own the watched descriptors."""
        self._loop.remove_reader(self._epoll.fileno())
        self._both.close()
        self._epoll.close()
        if self._late is not None:
            self._late.cancel()
