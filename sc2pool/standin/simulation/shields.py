"""Shields: they come back when a unit was not hit for a while.

Rule it keeps: a sum is taken loop by loop, so that steps of any size give the same shields.
"""

from __future__ import annotations

from sc2pool.standin.simulation.world import Unit

CALM_LOOPS = 160
"""Loops after the last hit in which shields do not come back: 10 s at 16 loops per second."""
PER_LOOP = 0.125
"""Shields that come back in a loop: 2 per second."""


def regenerate(shielded: list[Unit], loop: int, loops: int) -> None:
    """Let `loops` loops have passed, the last of them `loop`."""
    for unit in shielded:
        full = unit.type.shields
        if unit.shields < full:
            calm_loops = loop - max(loop - loops, unit.hit_at + CALM_LOOPS)
            for _ in range(calm_loops):
                unit.shields = min(full, unit.shields + PER_LOOP)
