"""The SC2 API without I/O: builds requests and checks replies. Also defines the game's time unit.

Importing this package imports no protobuf messages, because workers without a game import it.
"""

from __future__ import annotations

from typing import Final

LOOPS_PER_S: Final = 22.4
"""Game loops per second of real time, at the speed "faster", as in python-sc2 and pysc2."""
