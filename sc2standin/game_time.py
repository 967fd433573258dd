"""Game loops per second, for the two speeds of the game."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""At the speed "faster": loops per second of real time."""

LOOPS_PER_DATA_S: Final = 16
"""At the speed "normal": loops per second of the game's data (the API's `UnitTypeData`)."""
