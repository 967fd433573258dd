"""Tasks of a worker's own, which no code of the user's can cancel in another instance.

The instances of a worker share one event loop, and `asyncio.all_tasks()` shows a hook all of it. A
hook that cancels what it finds there ends its own episode, and that is its env's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from sc2pool.waiting import WorkerLoop


class OwnTask(asyncio.Task[None]):
    """A task that only its own instance's tasks cancel, and the worker's.

    Args:
        instance: its number; None for the worker's.
    """

    def __init__(
        self,
        work: Coroutine[Any, Any, None],
        loop: asyncio.AbstractEventLoop,
        instance: int | None = None,
    ) -> None:
        super().__init__(work, loop=loop)
        self._instance = instance
        if isinstance(loop, WorkerLoop):
            loop.count_in(self)

    def cancel(self, msg: Any | None = None) -> bool:
        canceller = None
        with suppress(RuntimeError):  # no loop runs: it is about to be closed
            canceller = asyncio.current_task()
        ours = isinstance(canceller, OwnTask) and canceller._instance in (None, self._instance)
        return super().cancel(msg) if ours or canceller is None else False


async def until_done(task: OwnTask) -> None:
    """Wait for a task; who cancels this wait does not end it."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    task.result()
