"""Bystanders: units that can be attacked and are in no `Pairs`: structures, and workers at work.

They do not fight, and are not pushed. A unit attacks one if it has no better target within its
reach: workers before structures, the nearest first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2standin.simulation.fights.pairs import hostile, is_target
from sc2standin.simulation.units import Unit
from sc2standin.simulation.world import World


class Bystanders:
    """The bystanders of one world, until a unit is created or dies, or begins or ends an errand."""

    def __init__(self, attackers: list[Unit], units: list[Unit]) -> None:
        self._attackers, self._units = attackers, units
        self.by_tag = {unit.tag: unit for unit in units}
        spared = np.array([[not is_target(one, unit) for unit in units] for one in attackers])
        structures = np.array([not unit.type.mobile for unit in units])
        self._ranks = [np.where(spared | later, np.inf, 0.0) for later in (structures, ~structures)]
        """Additions to each gap so that only workers are near, and only structures."""
        radius = np.array([unit.type.radius for unit in units])
        self._touch = np.array([one.type.radius for one in attackers])[:, None] + radius
        self._nearest: list[list[tuple[int, float]]] = []

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
        for nearest in self._nearest:
            j, gap = nearest[i]
            if gap <= reach:
                return self._units[j], gap
        return None, 0.0

    def _all_nearest(self) -> list[list[tuple[int, float]]]:
        """The nearest worker and the nearest structure of each attacker."""
        gap = np.sqrt(_between(self._attackers, self._units)) - self._touch
        found = []
        for rank in self._ranks:
            of_rank = gap + rank
            best = of_rank.argmin(axis=1)
            least = of_rank[np.arange(len(best)), best]
            found.append(list(zip(best.tolist(), least.tolist(), strict=True)))
        return found


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
