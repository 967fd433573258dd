"""Creep: tumors spread it over the ground, and without them it withers.

Rules it keeps: creep grows and withers by one cell every SPREAD_LOOPS loops, over ground on which
units walk, up to the distance from a tumor that the tumor's type sets. A game has this rule from
its first tumor on.
"""

from __future__ import annotations

import numpy as np

from sc2standin.simulation.terrain import Cells, Terrain
from sc2standin.simulation.units import NEVER
from sc2standin.simulation.world import World

SPREAD_LOOPS = 32
"""Loops between two steps of growth; our choice."""


class Creep:
    """The growth and decay of the creep of one episode (`World.creep`)."""

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world, self._terrain = world, terrain

    def start(self) -> None:
        """Do nothing: creep begins with the first loop."""

    def apply(self) -> int:
        """Let creep grow and wither if this loop is due; returns the next loop that is due."""
        world = self._world
        if world.loop % SPREAD_LOOPS == 0:
            self._spread()
        if world.creep is None and not any(unit.type.creep for unit in world.units):
            return NEVER
        return world.loop - world.loop % SPREAD_LOOPS + SPREAD_LOOPS

    def _spread(self) -> None:
        world = self._world
        tumors = [unit for unit in world.units if unit.type.creep]
        reached = self._terrain.seen_from((one.x, one.y, one.type.creep) for one in tumors)
        fed = reached & self._terrain.open_cells
        creep = np.zeros_like(fed) if world.creep is None else world.creep
        seeds = creep.copy()
        for one in tumors:
            seeds[int(one.y), int(one.x)] = True
        inner = ~_grown(~creep)
        spread = (_grown(seeds) & fed) | (creep & (fed | inner))
        if not np.array_equal(spread, creep):
            world.creep = spread if spread.any() else None


def _grown(cells: Cells) -> Cells:
    """These cells, and those beside them."""
    grown = cells.copy()
    grown[1:] |= cells[:-1]
    grown[:-1] |= cells[1:]
    grown[:, 1:] |= cells[:, :-1]
    grown[:, :-1] |= cells[:, 1:]
    return grown
