"""A hunt: again and again, each enemy without an order attacks the nearest of the client's units.

Rules it keeps: the game's loops, not the units' ages, say when; an enemy gets no order if it has no
weapon, or if its weapon cannot hit the nearest unit, because the game refuses such an order. It
still fires at what comes near.
"""

from __future__ import annotations

from functools import partial

from sc2standin.data.abilities import OrderKind
from sc2standin.map_reader.scenario import Hunt
from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import is_target
from sc2standin.simulation.rules.battle import REACTION_LOOPS
from sc2standin.simulation.units import ENEMY, ME, Order, Unit, way_to
from sc2standin.simulation.world import World


class HuntRule:
    """The rule of a `Hunt`."""

    def __init__(self, rule: Hunt, world: World) -> None:
        self._every_loops = rule.every_loops
        self._world = world
        world.reaction_loops = REACTION_LOOPS

    def start(self) -> None:
        """The first scan is at the first loop that is due."""

    def apply(self) -> int:
        """Look if this loop is due; returns the next one that is."""
        world = self._world
        since = world.loop % self._every_loops
        if since == 0:
            self._scan()
        return world.loop + self._every_loops - since

    def _scan(self) -> None:
        world = self._world
        prey = world.owned_by(ME)
        for unit in world.owned_by(ENEMY) if prey else ():
            if unit.order.kind != OrderKind.IDLE or unit.type.weapon is None:
                continue
            nearest = min(prey, key=partial(_distance, unit))
            if is_target(unit, nearest):
                order = Order(OrderKind.ATTACK, 0.0, 0.0, nearest.tag)
                orders.give(world, unit, order, queued=False)


def _distance(unit: Unit, other: Unit) -> float:
    return way_to(unit, other.x, other.y)[2]
