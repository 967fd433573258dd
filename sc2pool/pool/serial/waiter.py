"""How a serial pool waits: it runs the players' event loop until there is something to handle.

So the user's code runs inside the trainer's calls. What it raises is raised by the call, with the
traceback from the trainer's line to the hook's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sc2pool.pool.ipc.remote_errors import of_the_user
from sc2pool.pool.queues.waiter import Waiter

_ENDS_WITHIN_S = 1.0
"""How long tasks that were cancelled may take to end."""


class SerialWaiter(Waiter):
    """Runs an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._ready: dict[int, None] = {}
        self._raised: tuple[BaseException, Any] | None = None
        self._raised_in_close: BaseException | None = None

    def add(self, descriptor: int, tag: Any) -> None:
        self._tags[descriptor] = tag
        self._loop.add_reader(descriptor, self._on_ready, descriptor)

    def _on_ready(self, descriptor: int) -> None:
        self._ready[descriptor] = None
        self._loop.stop()

    def remove(self, descriptor: int) -> None:
        self._tags.pop(descriptor, None)
        self._doorbells.pop(descriptor, None)
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)

    def note_raised(self, error: BaseException, tag: Any) -> None:
        """The user's code has raised this, in an instance of this tag."""
        self._raised = error, tag
        self._loop.stop()

    def take_raised(self) -> tuple[BaseException, Any] | None:
        raised, self._raised = self._raised, None
        return raised

    def note_end(self, ending: asyncio.Task[None]) -> None:
        """An instance has ended; the first error of an env's own `close` is raised by `close`."""
        if self._raised_in_close is None and not ending.cancelled():
            error = ending.exception()
            self._raised_in_close = None if error is None else of_the_user(error)

    def wait(self, timeout_s: float | None) -> list[Any]:
        self._ready.clear()
        run(self._loop, timeout_s)
        return self._answer([one for one in self._ready if one in self._tags])

    def close(self) -> None:
        """As `Waiter.close`; at last raise what an env's own `close` has raised."""
        loop = self._loop
        if loop.is_closed() or loop.is_running():
            return
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: loop.stop())
            run(loop, _ENDS_WITHIN_S)
        run(loop, 0.0)  # a connection that was aborted ends in the loop's next pass
        loop.close()
        error, self._raised_in_close = self._raised_in_close, None
        if error is None:
            return
        try:
            raise error
        finally:
            del error  # its traceback has this frame


def run(loop: asyncio.AbstractEventLoop, timeout_s: float | None) -> None:
    """Run the loop until it is stopped, for this time at most (None: no limit).

    Another loop may run already, as in a notebook. It stands still meanwhile, as it does for
    whatever does not await. Not in another thread, because hooks are to run in the user's own.
    """
    timer = None if timeout_s is None else loop.call_later(max(0.0, timeout_s), loop.stop)
    try:
        with _without_running_loop():
            loop.run_forever()
    finally:
        if timer is not None:
            timer.cancel()


@contextmanager
def _without_running_loop() -> Iterator[None]:
    """In the block this thread has no running event loop, so another one can be run."""
    outer = asyncio._get_running_loop()
    if outer is None:
        yield
        return
    task = asyncio.current_task(outer)
    if task is not None:
        asyncio.tasks._leave_task(outer, task)  # as asyncio's documentation of extensions has it
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if task is not None:
            asyncio.tasks._enter_task(outer, task)
