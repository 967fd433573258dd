"""Game loops per second, of the two kinds of seconds there are."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Of real time: at the speed "faster", at which a game in real time runs."""

LOOPS_PER_DATA_S: Final = 16
"""Of the game's data, as in the API's `UnitTypeData`: at the speed "normal"."""
