"""Regeneration: shields when a unit was not hit for a while, life and energy always.

Rule it keeps: a sum is taken loop by loop, so that steps of any size give the same numbers.
"""

from __future__ import annotations

from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation.units import Unit

CALM_LOOPS = 160
"""Loops after the last hit in which shields do not come back: 10 s at 16 loops per second."""
SHIELDS_PER_LOOP = 0.125
"""Shields that come back in a loop: 2 per second."""
ENERGY_PER_LOOP = 0.5625 / LOOPS_PER_DATA_S
"""Energy that comes back in a loop."""


def recover(units: list[Unit], loop: int, loops: int) -> None:
    """Let `loops` loops have passed, the last of them `loop`."""
    for unit in units:
        kind = unit.type
        if unit.shields < kind.shields:
            calm_loops = _calm_loops(unit, loop, loops, CALM_LOOPS)
            unit.shields = _risen(unit.shields, kind.shields, SHIELDS_PER_LOOP, calm_loops)
        if kind.life_per_s and unit.life < kind.life:
            delay_loops = int(kind.life_delay_s * LOOPS_PER_DATA_S)
            calm_loops = _calm_loops(unit, loop, loops, delay_loops) if delay_loops else loops
            unit.life = _risen(unit.life, kind.life, kind.life_per_s / LOOPS_PER_DATA_S, calm_loops)
        if unit.energy < kind.energy:
            unit.energy = _risen(unit.energy, kind.energy, ENERGY_PER_LOOP, loops)


def _calm_loops(unit: Unit, loop: int, loops: int, delay_loops: int) -> int:
    """How many of the loops that have passed were later than its last hit by the delay."""
    return loop - max(loop - loops, unit.hit_at + delay_loops)


def _risen(value: float, most: float, per_loop: float, loops: int) -> float:
    for _ in range(loops):
        value = min(most, value + per_loop)
    return value
