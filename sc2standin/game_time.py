"""Game loops per second, for the two speeds of the game."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Loops per second of real time, at the speed "faster"."""

LOOPS_PER_DATA_S: Final = 16
"""Loops per second of the game's data, which has the speed "normal" (`UnitTypeData`)."""
