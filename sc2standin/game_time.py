"""Game loops per second, for the two kinds of seconds."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Loops per second of real time: at the speed "faster", at which a game in real time runs."""

LOOPS_PER_DATA_S: Final = 16
"""Loops per second of the game's data (the API's `UnitTypeData`): at the speed "normal"."""
