"""Real time: how many game loops should have been played by now.

The clock is the monotonic one; the simulation itself never sees it.
"""

from __future__ import annotations

import time

from sc2pool.protocol.game_time import LOOPS_PER_S


class RealtimeClock:
    """Started with an episode; tells the loop the episode should be at."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def loops_due(self) -> int:
        """Whole loops that should have been played by now."""
        return int((time.monotonic() - self._started_s) * LOOPS_PER_S)

    def skip(self, seconds: float) -> None:
        """Take that much time for not passed."""
        self._started_s += seconds

    def wait_s(self, loop: int) -> float:
        """Seconds until that loop is due; 0 if it is already."""
        return max(0.0, self._started_s + loop / LOOPS_PER_S - time.monotonic())
