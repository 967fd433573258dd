"""The SC2 API without I/O: build requests, check replies; and the game's unit of time.

Importing this package imports no protobuf messages, because workers without a game use it too.
"""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Game loops per second of real time, at the speed "faster", as in python-sc2 and pysc2."""
