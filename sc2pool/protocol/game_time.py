"""The game's unit of time. Rule: it imports nothing, because workers without a game use it too."""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Game loops in a second of real time, at the speed "faster"; python-sc2 and pysc2 use the same."""
