"""Waiting for a descriptor more cheaply than asyncio does it, in two ways.

    one env in the worker       `BlockingWait`    the task blocks the thread
    several                     `Turns`           all their descriptors are one to asyncio

A worker with one env does one thing at a time: it waits for an action, or for the game's answer.
asyncio pays for each wait with a future, a callback and a pass over its queues, several times the
cost of the system call. In a `WorkerLoop` the task that waits may block the thread instead. With
several envs they must take turns: one wait for all of them blocks the thread, and those that are
ready go on, one after the other (`Turn`).

Rules: everything the loop watches ends the wait too (an epoll descriptor can itself be watched),
and the caller then waits in asyncio's own way. A loop with any task besides the worker's own (one
that the user's code started, say) is never blocked, nor is one without epoll (not Linux).
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
"""How often deadlines are looked at while tasks take turns."""
_BACK_AFTER_S = 0.02
"""How long tasks take turns before asyncio comes by, for its timers and all else it watches."""
_MOST_READY = 2
"""How many descriptors a `BlockingWait` has; without a limit epoll makes room for a thousand."""


def run_in_selector_loop(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """As `asyncio.run`, whose loop cannot watch a descriptor on Windows."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(coroutine)


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that its tasks may block.

    Attributes:
        tasks: how many tasks are alive.
        in_line: how many of them wait for a `Turn`.
        own_tasks: the largest number of tasks with which it may be blocked; 0 forbids it.
        descriptor: readable while the loop has something to read; -1 without epoll.
        turns: for tasks that may not block it; None without epoll.
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
        """Count a task until it is done; `create_task` does it by itself."""
        self.tasks += 1
        task.add_done_callback(self._count_out)

    def _count_out(self, _: asyncio.Task[Any]) -> None:
        self.tasks -= 1


class BlockingWait:
    """Waits for one descriptor in a loop that may be blocked.

    Args:
        descriptor: what to wait for. It is watched for changes: data that was there before the
            wait began may or may not end it, so look first, then wait.

    Attributes:
        loop: the running one; None if it may never be blocked.
        epoll: the descriptor of what it waits with; -1 before the first wait.
    """

    def __init__(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self.loop: WorkerLoop | None = None
        self.epoll = -1
        self._descriptor = descriptor
        self._epoll: Any = None  # until it is needed: the system would tell it of all that happens
        if LINUX and isinstance(loop, WorkerLoop):
            self.loop = loop

    @property
    def possible(self) -> bool:
        """True if the running loop may be blocked now."""
        loop = self.loop
        return loop is not None and loop.tasks <= loop.own_tasks

    def wait(self, timeout_s: float = -1) -> bool:
        """Block until there is something to read, if that is `possible`.

        Args:
            timeout_s: negative for no limit.

        Returns:
            False if something else that the loop watches is ready, or may be; if the time is
            over; or if the loop may not be blocked.
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
        """Give the descriptor back; the watched one is the caller's."""
        if self._epoll is not None:
            self._epoll.close()


class Turn:
    """A reusable event: a task awaits it until `go_on`.

    It has what asyncio's tasks ask of a future. A future's task continues in the loop's next pass;
    this one's continues at once, inside `go_on`, and nothing has to be made for each wait.

    Args:
        loop: in which the task runs.

    Attributes:
        deadline_s: see `Turns.wait`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._worker = loop if isinstance(loop, WorkerLoop) else None
        self._asyncio_future_blocking = False  # by this name tasks know what they may await
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
        """Run the task until its next wait, if it waits; call it outside of all tasks.

        Args:
            in_time: what the `await` returns.
        """
        if self._task is not None:
            (call, context), self._task = self._task, None
            self._leave_line()
            self._is_due = False
            self._in_time = in_time
            context.run(call, self)

    def go_on_soon(self) -> None:
        """As `go_on`, in the loop's next pass; may be called by tasks."""
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

    # What tasks call.

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, call: Callable[[Any], object], *, context: Context) -> None:
        self._task = call, context
        if self._worker is not None:
            self._worker.in_line += 1

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's name
        """The task is cancelled: it continues with that, soon."""
        if self._task is None:
            return False
        self._is_cancelled = True
        self.go_on_soon()
        return True

    def result(self) -> None:
        """Raise what the task is to raise."""
        if self._is_cancelled:
            self._is_cancelled = False
            raise asyncio.CancelledError


class Turns:
    """Waits of several tasks, for descriptors that asyncio sees as one.

    While all tasks but the worker's own wait for their turns, they take them without asyncio.

    Only Linux has what it waits with.

    Args:
        loop: in which the tasks run.
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
        """Call this when something has come. It is watched for changes: read all there is."""
        if not LINUX:
            raise NotImplementedError("only Linux has an epoll")
        self._called[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)

    def forget(self, descriptor: int) -> None:
        """Do not watch it any more."""
        if self._called.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _on_ready(self) -> None:
        """The callback of asyncio."""
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
                if call is not None:  # else a call before it has forgotten this one
                    call()
        finally:
            self._in_pass = False
            self._call_at_end()

    def at_end(self, call: Callable[[], None]) -> None:
        """Call this when all that were ready have had their turn."""
        self._at_end.append(call)
        if not self._in_pass:
            self._loop.call_soon(self._call_at_end)  # unless turns are taken before it

    def _call_at_end(self) -> None:
        at_end, self._at_end = self._at_end, []
        for call in at_end:
            call()

    def wait(self, turn: Turn, deadline_s: float) -> Turn:
        """Wait for `go_on`; to be awaited.

        Args:
            turn: of the task that calls this.
            deadline_s: in the time of `time.monotonic`; it is looked at now and then.

        Returns:
            What, awaited, is False if the deadline has passed.
        """
        turn.deadline_s = deadline_s
        self._limited.add(turn)
        if self._late is None:
            self._late = self._loop.call_later(_POLL_INTERVAL_S, self._poll)
        return turn

    def _poll(self) -> None:
        """One timer for all that wait: most go on long before it."""
        now_s = time.monotonic()
        self._late = None
        self._limited = {turn for turn in self._limited if turn.is_awaited}
        for turn in [turn for turn in self._limited if now_s >= turn.deadline_s]:
            turn.go_on(in_time=False)
        if self._limited and self._late is None:
            self._late = self._loop.call_later(_POLL_INTERVAL_S, self._poll)

    def close(self) -> None:
        """Give the descriptor back; the watched ones are the callers'."""
        self._loop.remove_reader(self._epoll.fileno())
        self._both.close()
        self._epoll.close()
        if self._late is not None:
            self._late.cancel()
