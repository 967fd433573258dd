"""A side of a match in real time that decides by itself: it follows its game, not the learner.

    learner   ── action ─ period ─► ┄┄┄ computes ┄┄┄ ── action ─ period ─►
    the side  ── turn ─ period ─ turn ─ period ─ turn ─ period ─ turn ─►

Rules: its turns go on while the learner computes, until the learner's episode is over; what it
raises is raised in the learner's next step; when it rests, for a pause or at the end, its game has
no request in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sc2pool.game.match import Match
from sc2pool.tasks.players.match.sides import PlayedSide
from sc2pool.tasks.players.outcome import is_last
from sc2pool.tasks.queue_pair import Transition


class RunningSide:
    """Runs one side through an episode.

    Args:
        index: of the side; 0 is the host's.
        first: its first transition; None if it has none.
        loops: game loops of an env step, for a side without a pace of its own.
    """

    def __init__(
        self,
        match: Match,
        index: int,
        side: PlayedSide,
        first: Transition | None,
        loops: Callable[[], int],
    ) -> None:
        self.newest = first
        self._match = match
        self._index = index
        self._side = side
        self._loops = loops
        self._turn = asyncio.Lock()
        """Held during a turn and the period after it, and while it rests."""
        self._rests = False
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let it begin with its first turn; no effect if it has."""
        if self._running is None:
            self._running = asyncio.ensure_future(self._run())

    def check(self) -> None:
        """Raise what it has raised."""
        if self._running is not None and self._running.done():
            self._running.result()

    async def _run(self) -> None:
        match, index, side = self._match, self._index, self._side
        ended = False
        while not (ended or is_last(self.newest)):
            async with self._turn:
                with match.naming(index):
                    orders = await side.turn(())
                step = await match.step_one(index, orders, side.loops or self._loops())
                with match.naming(index):
                    self.newest = await side.see(step)
                ended = step.ended

    async def rest(self) -> None:
        """Returns when the period of its newest turn is over; the next turn waits for `go_on`."""
        if not self._rests:
            await self._turn.acquire()
            self._rests = True

    def go_on(self) -> None:
        """Let its turns go on; no effect if it does not rest."""
        if self._rests:
            self._rests = False
            self._turn.release()

    def cancel(self) -> None:
        """End it at once; its game cannot be used any more."""
        running = self._running
        if running is not None and not running.cancel() and not running.cancelled():
            running.exception()  # what has ended the episode counts

    async def end(self) -> None:
        """End it after its newest turn."""
        await self.rest()
        self.cancel()
