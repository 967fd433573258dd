"""Waiting for one descriptor without a turn of the event loop, where that is no different.

A worker does one thing at a time: it waits for an action, or for the game's answer. asyncio pays
for each wait with a future, a callback and a pass over its queues, several times the cost of the
system call. A `WorkerLoop` may instead be blocked in: the task that waits keeps the thread.

Rules: everything the loop watches ends the wait too (an epoll descriptor can itself be watched),
and the caller then waits in asyncio's own way; a loop that has any task but the worker's own, one
started by the user's code say, is never blocked in; where the system has no epoll, neither.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from typing import Any

if sys.platform == "linux":
    import select

USE_EPOLL = sys.platform == "linux"


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that its tasks may block in.

    Attributes:
        tasks: how many live.
        own_tasks: as many may live while it is blocked in; 0 forbids it.
        descriptor: readable while the loop has something to read; None where it has no such.
    """

    def __init__(self, own_tasks: int) -> None:
        self.own_tasks = own_tasks
        self.descriptor: int | None = None
        self.tasks = 0
        if USE_EPOLL:
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
    """Waits for one descriptor in a loop that may be blocked in.

    Args:
        descriptor: what to wait for. It is watched for changes: data that was there before the
            wait began may or may not end it, so look first, then wait.
    """

    def __init__(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, WorkerLoop) else None
        self._descriptor = descriptor
        if self._loop is None or self._loop.descriptor is None:
            self._loop = None
            return
        self._epoll = select.epoll()
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)
        self._epoll.register(self._loop.descriptor, select.EPOLLIN)

    @property
    def possible(self) -> bool:
        """Whether the running loop may be blocked in now."""
        loop = self._loop
        return loop is not None and loop.tasks <= loop.own_tasks

    def wait(self, timeout_s: float = -1) -> bool:
        """Block until there is something to read, where that is `possible`.

        Args:
            timeout_s: negative for no limit.

        Returns:
            False if it was, or may have been, something else that the loop has to see to, if the
            time is over, or if the loop may not be blocked in.
        """
        loop = self._loop
        if loop is None or loop.tasks > loop.own_tasks:
            return False
        ready = self._epoll.poll(timeout_s)
        return len(ready) == 1 and ready[0][0] == self._descriptor

    def close(self) -> None:
        """Give the descriptor back; the watched one is the caller's."""
        if self._loop is not None:
            self._epoll.close()
