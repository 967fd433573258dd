"""What a player's workers have brought home, and how much that is in a minute.

The rates are those that real replays show, to the digit: what came home in the last 240 loops, at
16 loops a second and 1.4 times, as the game writes that number in 4096ths.
"""

from __future__ import annotations

from collections import deque

from sc2standin.game_time import LOOPS_PER_DATA_S

WINDOW_LOOPS = 240
"""The time that the rates are about; less before a game is as old."""
_FASTER = 5734 / 4096
_LOOPS_PER_MINUTE = LOOPS_PER_DATA_S * 60


class Earnings:
    """Those of one player in one episode.

    Attributes:
        collected: minerals and gas, all in all.
    """

    def __init__(self) -> None:
        self.collected = (0, 0)
        self._lately: deque[tuple[int, int, int]] = deque()
        """Loop, minerals and gas of what came home lately."""

    def add(self, loop: int, minerals: int, vespene: int) -> None:
        """Note what a worker brings home in this loop."""
        self.collected = (self.collected[0] + minerals, self.collected[1] + vespene)
        while self._lately and self._lately[0][0] <= loop - WINDOW_LOOPS:
            self._lately.popleft()
        self._lately.append((loop, minerals, vespene))

    def rates(self, loop: int) -> tuple[float, float]:
        """Minerals and gas in a minute, as of this loop."""
        if not self._lately:
            return 0.0, 0.0
        window_loops = min(max(loop, 1), WINDOW_LOOPS)
        lately = [one for one in self._lately if one[0] > loop - WINDOW_LOOPS]
        minerals, vespene = (sum(one[kind] for one in lately) for kind in (1, 2))
        a_minute = _LOOPS_PER_MINUTE / window_loops * _FASTER
        return minerals * a_minute, vespene * a_minute
