"""A real-time game's behaviour after a stop (SIGSTOP, later SIGCONT).

The real game's behaviour is unknown, so there are two modes:

    catch-up    the clock continued: the missed loops are played as fast as possible
    freeze      the clock stood still: the game continues where it was stopped

A process gets a signal when it is continued, but not when it is stopped. So it records the time
every few milliseconds; after SIGCONT the time since the last record does not count.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from enum import StrEnum
from typing import Final

from sc2standin.process.state import State

_BEAT_S: Final = 0.01


class AfterStop(StrEnum):
    """The fate of the loops that were due while the process was stopped."""

    CATCH_UP = "catch-up"
    FREEZE = "freeze"


class FrozenStops:
    """Excludes the time for which the process is stopped from the game's time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._alive_s = time.monotonic()

    def watch(self) -> None:
        """Begin, in the running event loop."""
        if sys.platform != "win32":
            # asyncio's handler would run in a later turn of the loop, after the clock was read.
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
