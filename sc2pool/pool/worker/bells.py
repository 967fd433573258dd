"""The doorbells of a worker: its tenants share them.

Rules: a ring may be for any of the tenants, so each that waits looks into its row; a tenant that is
the only one in need of turns may block the worker for it (`sc2pool.waiting`).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.waiting import BlockingWait, Turns, WorkerLoop


class Waiting(Protocol):
    """A queue pair's end that waits for a request."""

    def is_requested(self) -> bool:
        """Whether there is something to do."""
        ...


class Bells:
    """The worker's ends.

    Args:
        request: the trainer rings it.
        reply: wakes the trainer.
    """

    def __init__(self, request: Doorbell, reply: Doorbell) -> None:
        self._request = request
        self._reply = reply
        self._block: BlockingWait | None = None  # until an event loop runs
        self._listens = False
        self._ring_is_due = False
        self._waiting: dict[Waiting, asyncio.Future[None]] = {}

    def ring(self) -> None:
        """A reply is there: wake the trainer, once for all that reply in this turn."""
        if not self._listens or self._may_block():
            self._reply.ring()
        elif not self._ring_is_due:
            self._ring_is_due = True
            asyncio.get_running_loop().call_soon(self._ring_if_due)

    def _ring_if_due(self) -> None:
        if self._ring_is_due:
            self._ring_is_due = False
            self._reply.ring()

    async def wait(self, end: Waiting) -> None:
        """Wait for a ring, or for `wake`; look before, and look again after it."""
        if self._block is None:
            self._block = BlockingWait(self._request.listening)
        if self._may_block():
            self._stop_listening()
            self._ring_if_due()
            if self._block.wait():
                return
        self._listen()
        if end.is_requested():
            return  # it came before this listened
        waiting = self._waiting[end] = asyncio.get_running_loop().create_future()
        try:
            await waiting
        finally:
            del self._waiting[end]

    def _may_block(self) -> bool:
        return self._block is not None and self._block.possible

    def _listen(self) -> None:
        if self._listens:
            return
        self._listens = True
        loop, turns = _loop_and_turns()
        if turns is None:
            loop.add_reader(self._request.listening, self._on_ring)
        else:
            turns.watch(self._request.listening, self._on_ring)

    def _stop_listening(self) -> None:
        if not self._listens:
            return
        self._listens = False
        loop, turns = _loop_and_turns()
        if turns is None:
            loop.remove_reader(self._request.listening)
        else:
            turns.forget(self._request.listening)

    def _on_ring(self) -> None:
        self._request.quiet()
        for end, waiting in self._waiting.items():
            if end.is_requested() and not waiting.done():
                waiting.set_result(None)

    def wake(self, end: Waiting) -> None:
        """Let this one look again, if it waits."""
        waiting = self._waiting.get(end)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def _loop_and_turns() -> tuple[asyncio.AbstractEventLoop, Turns | None]:
    loop = asyncio.get_running_loop()
    return loop, loop.turns if isinstance(loop, WorkerLoop) else None
