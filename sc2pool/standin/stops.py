"""What a game in real time makes of a stop (SIGSTOP, later SIGCONT): nothing, or no time passed.

What the real game does is unknown, so both can be had:

    catch-up    the clock went on: the missed loops are played, as fast as can be
    freeze      the clock stood still: the game goes on where it was stopped

A process is not told that it is stopped, only that it goes on. So it notes every few milliseconds
that it is alive; when it is continued, the time since the newest note is time that did not pass.
"""

from __future__ import annotations

import asyncio
import signal
import time
from enum import StrEnum
from typing import Final

from sc2pool.standin.state import State

_BEAT_S: Final = 0.01


class AfterStop(StrEnum):
    """What happens to the loops that were due while the process was stopped."""

    CATCH_UP = "catch-up"
    FREEZE = "freeze"


class FrozenStops:
    """Keeps the time for which the process is stopped from passing in its game."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._alive_s = time.monotonic()

    def watch(self) -> None:
        """Begin, in the running event loop."""
        # Not asyncio's own handler: that one waits for its turn, and the clock is read before.
        signal.signal(signal.SIGCONT, self._on_continued)
        self._beat()

    def _beat(self) -> None:
        self._alive_s = time.monotonic()
        asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def _on_continued(self, *_: object) -> None:
        now_s = time.monotonic()
        if self._state.clock is not None:
            self._state.clock.skip(now_s - self._alive_s)
        self._alive_s = now_s
