"""Waiting for a descriptor more cheaply than asyncio does it, in two ways.

    one env in the worker       `BlockingWait`    the task blocks the thread
    several                     `Turns`           all their descriptors are one to asyncio

A worker with one env does one thing at a time: it waits for an action, or for the game's answer.
asyncio pays for each wait with a future, a callback and a pass over its queues, several times the
cost of the system call. In a `WorkerLoop` the task that waits may block the thread instead. With
several envs they must take turns; asyncio would still add each descriptor to what it watches, and
remove it again, for each wait.

Rules: everything the loop watches ends the wait too (an epoll descriptor can itself be watched),
and the caller then waits in asyncio's own way; a loop with any task besides the worker's own (one
that the user's code started, say) is never blocked, nor is one without epoll (not Linux).
"""

from __future__ import annotations

import asyncio
import select
import selectors
import sys
import time
from collections.abc import Callable
from typing import Any

_LOOK_EVERY_S = 0.1
"""How often deadlines are looked at while tasks take turns."""
_MOST_READY = 2
"""How many descriptors a `BlockingWait` has; without a limit epoll makes room for a thousand."""


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that its tasks may block.

    Attributes:
        tasks: how many tasks are alive.
        own_tasks: the largest number of tasks with which it may be blocked; 0 forbids it.
        descriptor: readable while the loop has something to read; -1 without epoll.
        turns: for tasks that may not block it; None without epoll.
    """

    def __init__(self, own_tasks: int) -> None:
        self.own_tasks = own_tasks
        self.descriptor = -1
        self.tasks = 0
        if sys.platform == "linux":
            selector = selectors.EpollSelector()
            self.descriptor = selector.fileno()
            super().__init__(selector)
        else:
            super().__init__()
        self._turns: Turns | None = None
        self.set_task_factory(self._make_task)

    @property
    def turns(self) -> Turns | None:
        if self._turns is None and sys.platform == "linux":
            self._turns = Turns(self)
        return self._turns

    def close(self) -> None:
        if self._turns is not None:
            self._turns.close()
        super().close()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **keywords: Any
    ) -> asyncio.Task[Any]:
        self.tasks += 1
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **keywords)
        task.add_done_callback(self._count_out)
        return task

    def _count_out(self, _: asyncio.Task[Any]) -> None:
        self.tasks -= 1


class BlockingWait:
    """Waits for one descriptor in a loop that may be blocked.

    Args:
        descriptor: what to wait for. It is watched for changes: data that was there before the
            wait began may or may not end it, so look first, then wait.
    """

    def __init__(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self._loop: WorkerLoop | None = None
        self._descriptor = descriptor
        if sys.platform == "linux" and isinstance(loop, WorkerLoop):
            self._loop = loop
            self._epoll = select.epoll()
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)
            self._epoll.register(loop.descriptor, select.EPOLLIN)

    @property
    def possible(self) -> bool:
        """Whether the running loop may be blocked now."""
        loop = self._loop
        return loop is not None and loop.tasks <= loop.own_tasks

    def wait(self, timeout_s: float = -1) -> bool:
        """Block until there is something to read, if that is `possible`.

        Args:
            timeout_s: negative for no limit.

        Returns:
            False if something else that the loop watches is ready, or may be; if the time is
            over; or if the loop may not be blocked.
        """
        loop = self._loop
        if sys.platform != "linux" or loop is None or loop.tasks > loop.own_tasks:
            return False
        ready = self._epoll.poll(timeout_s, _MOST_READY)
        return len(ready) == 1 and ready[0][0] == self._descriptor

    def close(self) -> None:
        """Give the descriptor back; the watched one is the caller's."""
        if sys.platform == "linux" and self._loop is not None:
            self._epoll.close()


class Turns:
    """Waits of several tasks, for descriptors that asyncio sees as one.

    Only Linux has what it waits with.

    Args:
        loop: in which the tasks run.
    """

    _epoll: Any

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._called: dict[int, Callable[[], None]] = {}
        self._late: asyncio.TimerHandle | None = None
        self._deadlines: dict[asyncio.Future[bool], float] = {}
        if sys.platform != "linux":
            raise NotImplementedError("only Linux has an epoll")
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call this when something has come. It is watched for changes: read all there is."""
        if sys.platform != "linux":
            raise NotImplementedError("only Linux has an epoll")
        self._called[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)

    def forget(self, descriptor: int) -> None:
        """Do not watch it any more."""
        if self._called.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _on_ready(self) -> None:
        for descriptor, _ in self._epoll.poll(0, len(self._called)):
            self._called[descriptor]()

    async def wait(self, future: asyncio.Future[bool], deadline_s: float) -> bool:
        """Wait for a future that `call` settles with True.

        Args:
            deadline_s: in the time of `time.monotonic`; it is looked at now and then.

        Returns:
            False if the deadline has passed.
        """
        self._deadlines[future] = deadline_s
        if self._late is None:
            self._late = self._loop.call_later(_LOOK_EVERY_S, self._look)
        try:
            return await future
        finally:
            del self._deadlines[future]

    def _look(self) -> None:
        """One timer for all that wait: most are settled long before it."""
        now_s = time.monotonic()
        for future, deadline_s in self._deadlines.items():
            if now_s >= deadline_s and not future.done():
                future.set_result(False)
        self._late = None
        if self._deadlines:
            self._late = self._loop.call_later(_LOOK_EVERY_S, self._look)

    def close(self) -> None:
        """Give the descriptor back; the watched ones are the callers'."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        if self._late is not None:
            self._late.cancel()
