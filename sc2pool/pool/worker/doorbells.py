"""The doorbells of a worker, which its instances share.

Rules: a ring may be for any of the instances, so each waiting instance checks its slot. If no other
task needs a turn, the waiting instance may block the worker's thread (`sc2pool.waiting`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.protocol import compiled
from sc2pool.waiting import BlockingWait, Turn, Turns, WorkerLoop


class Waiting(Protocol):
    """A queue pair's end that waits for a request."""

    def is_requested(self) -> bool:
        """True if a request has arrived."""
        ...


class Ringing:
    """Wakes the trainer: immediately, or with one ring for all replies of a turn.

    Args:
        later: called when a delayed ring becomes due.

    Attributes:
        in_turns: True if a ring is delayed until the turn is over.
        is_due: True if a delayed ring was not made yet.
    """

    def __init__(self, reply: Doorbell, later: Callable[[], None]) -> None:
        self._reply = reply
        self._later = later
        self.in_turns = False
        self.is_due = False

    def ring(self) -> None:
        if not self.in_turns:
            self._reply.ring()
        elif not self.is_due:
            self.is_due = True
            self._later()


class Doorbells:
    """The worker's ends of its doorbells.

    Attributes:
        ring: wakes the trainer after a reply, with one ring for all replies of a turn.
        listening: the descriptor that the trainer rings.
        blocked_in: the loop that the newest `wait` blocked. None if it blocked no loop.
        epoll: the epoll descriptor of that wait. It watches the loop's descriptor and `listening`.
    """

    def __init__(self, request: Doorbell, reply: Doorbell) -> None:
        self._request = request
        self._reply = reply
        self._block: BlockingWait | None = None  # until an event loop runs
        self.listening = request.listening
        self.blocked_in: WorkerLoop | None = None
        self.epoll = -1
        self._listens = False
        self._turns: Turns | None = None
        self._soon: Callable[[Callable[[], None]], object] | None = None
        """Schedules a call for the end of a turn; None before the first `_listen`."""
        fast, later = compiled.fast, self._ring_later
        self._ringing = (
            fast.Ringing(reply.ringing, reply.ring, later) if fast else Ringing(reply, later)
        )
        self.ring: Callable[[], None] = self._ringing.ring
        self._waiting: dict[Waiting, Turn] = {}

    def _ring_later(self) -> None:
        assert self._soon is not None, "it rings later only while it listens"
        self._soon(self._ring_if_due)

    def _ring_if_due(self) -> None:
        if self._ringing.is_due:
            self._ringing.is_due = False
            self._reply.ring()

    def wait(self, end: Waiting) -> Turn | None:
        """Wait for a ring or for `wake`. Check for a request before this and again after it.

        Returns:
            A turn to await; None if the wait is over.
        """
        if self._block is None:
            self._block = BlockingWait(self._request.listening)
        if self._block.possible:
            if self._listens:
                self._stop_listening()
            self._ring_if_due()
            rung = self._block.wait()
            self.blocked_in, self.epoll = self._block.loop, self._block.epoll
            if rung:
                return None
        if not self._listens:
            self._listen()
        if end.is_requested():
            return None  # the request arrived before `_listen`
        turn = self._waiting.get(end)
        if turn is None:
            turn = self._waiting[end] = Turn(asyncio.get_running_loop())
        return turn

    def _listen(self) -> None:
        self._listens = self._ringing.in_turns = True
        self.blocked_in = None
        loop, turns = _loop_and_turns()
        self._turns, self._soon = turns, loop.call_soon if turns is None else turns.at_end
        if turns is None:
            loop.add_reader(self._request.listening, self._on_ring)
        else:
            turns.watch(self._request.listening, self._on_ring)

    def _stop_listening(self) -> None:
        self._listens = self._ringing.in_turns = False
        loop, turns = _loop_and_turns()
        if turns is None:
            loop.remove_reader(self._request.listening)
        else:
            turns.forget(self._request.listening)

    def _on_ring(self) -> None:
        if self._turns is None:  # asyncio's own wait is level-triggered
            self._request.quiet()
        for end, turn in list(self._waiting.items()):
            if end.is_requested():
                turn.go_on()

    def wake(self, end: Waiting) -> None:
        """End the wait of this end, if it waits."""
        turn = self._waiting.get(end)
        if turn is not None:
            turn.go_on_soon()

    def forget(self, end: Waiting) -> None:
        """Remove an end that waits no more."""
        self._waiting.pop(end, None)


def _loop_and_turns() -> tuple[asyncio.AbstractEventLoop, Turns | None]:
    loop = asyncio.get_running_loop()
    return loop, loop.turns if isinstance(loop, WorkerLoop) else None
