"""Bystanders: units that can be attacked and are in no `Pairs`: structures, and workers at work.

They do not fight, and are not pushed. A unit attacks one if it has no better target: workers
before structures, the nearest first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.standin.simulation.fights.pairs import hostile
from sc2pool.standin.simulation.world import Unit, World

_LATER_CELLS = 10_000.0
"""What is added to the distance of a structure, so that any worker is nearer."""


class Bystanders:
    """The bystanders of one world, until a unit is created or dies, or begins or ends an errand."""

    def __init__(self, attackers: list[Unit], units: list[Unit]) -> None:
        self._attackers, self._units = attackers, units
        self.by_tag = {unit.tag: unit for unit in units}
        friends = [[not hostile(one.owner, unit.owner) for unit in units] for one in attackers]
        structures = np.array([not unit.type.mobile for unit in units])
        self._later = np.where(np.array(friends), np.inf, np.where(structures, _LATER_CELLS, 0.0))
        radius = np.array([unit.type.radius for unit in units])
        self._touch = np.array([one.type.radius for one in attackers])[:, None] + radius
        self._nearest: list[tuple[int, float]] = []

    def measure(self) -> None:
        """Take the units' places of this loop."""
        self._nearest = []

    def gap(self, attacker: Unit, target: Unit) -> float:
        """Distance between the edges of two units."""
        dx, dy = target.x - attacker.x, target.y - attacker.y
        return float((dx * dx + dy * dy) ** 0.5 - attacker.type.radius - target.type.radius)

    def choose(self, i: int, weapon_range: float, reach: float) -> tuple[Unit | None, float]:
        """The target of attacker i within its reach, and the gap to it; None if it has none."""
        attacker = self._attackers[i]
        kept = self.by_tag.get(attacker.engaged)
        if kept is not None:
            gap = self.gap(attacker, kept)
            if gap <= weapon_range:
                return kept, gap
        if not self._nearest:
            self._nearest = self._all_nearest()
        j, gap = self._nearest[i]
        return (self._units[j], gap) if gap <= reach else (None, 0.0)

    def _all_nearest(self) -> list[tuple[int, float]]:
        gap = np.sqrt(_between(self._attackers, self._units)) - self._touch
        best = (gap + self._later).argmin(axis=1)
        rows = np.arange(len(best))
        found = np.where(np.isinf(self._later[rows, best]), np.inf, gap[rows, best])
        return list(zip(best.tolist(), found.tolist(), strict=True))


def _between(attackers: list[Unit], units: list[Unit]) -> NDArray[np.float64]:
    """The squared distance of each pair."""
    x = np.array([one.x for one in attackers])[:, None] - np.array([unit.x for unit in units])
    y = np.array([one.y for one in attackers])[:, None] - np.array([unit.y for unit in units])
    return np.asarray(x * x + y * y)


def bystanders_of(world: World) -> Bystanders | None:
    """The bystanders of a world; None if none of them has an enemy among the units that walk."""
    walking = set(world.walkers)
    units = [unit for unit in world.units if not unit.type.invulnerable and unit not in walking]
    sides = {unit.owner for unit in units}
    if not any(hostile(one.owner, side) for one in world.walkers for side in sides):
        return None
    return Bystanders(world.walkers, units)
