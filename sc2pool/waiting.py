"""Waiting for one descriptor without a turn of the event loop, if that makes no difference.

A worker does one thing at a time: it waits for an action, or for the game's answer. asyncio pays
for each wait with a future, a callback and a pass over its queues, several times the cost of the
system call. In a `WorkerLoop` the task that waits may block the thread instead.

Rules: everything the loop watches ends the wait too (an epoll descriptor can itself be watched),
and the caller then waits in asyncio's own way; a loop with any task besides the worker's own (one
that the user's code started, say) is never blocked, nor is one without epoll (not Linux).
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from typing import Any

if sys.platform == "linux":
    import select


_MOST_READY = 2
"""How many descriptors a `BlockingWait` has; without a limit epoll makes room for a thousand."""


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that its tasks may block.

    Attributes:
        tasks: how many tasks are alive.
        own_tasks: the largest number of tasks with which it may be blocked; 0 forbids it.
        descriptor: readable while the loop has something to read; -1 without epoll.
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
        self.set_task_factory(self._make_task)

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
