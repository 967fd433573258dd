"""Game loops per second, for the two speeds of the game."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""The number of loops per second of real time, at the speed "faster"."""

LOOPS_PER_DATA_S: Final = 16
"""The number of loops per second of the game's data, at the speed "normal" (`UnitTypeData`)."""
