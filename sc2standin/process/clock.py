"""Real time: how many game loops are due by now.

It uses the monotonic clock. The simulation itself reads no clock.
"""

from __future__ import annotations

import time

from sc2standin.game_time import LOOPS_PER_S


class RealtimeClock:
    """Starts with an episode and computes the loop that is due."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def loops_due(self) -> int:
        """Number of whole loops that are due by now."""
        return int((time.monotonic() - self._started_s) * LOOPS_PER_S)

    def skip(self, seconds: float) -> None:
        """Exclude this many seconds from the game's time."""
        self._started_s += seconds

    def wait_s(self, loop: int) -> float:
        """Seconds until this loop is due; 0 if it is due already."""
        return max(0.0, self._started_s + loop / LOOPS_PER_S - time.monotonic())
