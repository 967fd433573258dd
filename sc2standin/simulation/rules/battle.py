"""The rules of fights without a town: battles and hunts.

In a battle the enemies attack, and when both sides are dead the battle begins again. In a hunt each
enemy without an order attacks the nearest of the client's units, at regular intervals.

Rules of a hunt: the intervals count the game's loops, not the units' ages. An enemy gets no order
if it has no weapon, or if its weapon cannot hit the nearest unit, because the game refuses such an
order. Such an enemy still fires at units that come near.
"""

from __future__ import annotations

from functools import partial

from sc2standin.data.abilities import OrderKind
from sc2standin.map_reader.fields import Point
from sc2standin.map_reader.scenario import Battle, Group, Hunt
from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import is_target
from sc2standin.simulation.rules.placement import Placement, place_group
from sc2standin.simulation.units import ENEMY, ME, NEVER, Order, Unit, way_to
from sc2standin.simulation.world import World

STRAY = 0.2
"""The largest random offset of a unit from its place in its group along each axis, in cells.

The places in the real game are not known. Without the offset the approach would always be the same,
and a battle of equal sides would always have the same winner.
"""
REACTION_LOOPS = 4
"""The longest time that a unit needs to aim at a target that it chooses by itself.

It is calibrated by the win rates of SMAC's heuristic, which the README has.
"""


class BattleRule:
    """The rule of a `Battle`, whose units are on the map from the loop `begins_at` on."""

    def __init__(
        self,
        rule: Battle,
        groups: tuple[Group, ...],
        world: World,
        placement: Placement,
        begins_at: int,
    ) -> None:
        self._rule, self._groups, self._begins_at = rule, groups, begins_at
        self._world, self._placement = world, placement
        world.reaction_loops = REACTION_LOOPS

    def start(self) -> None:
        """Begin the battle; if it begins later, remove the units from the map until then."""
        if self._begins_at:
            self._world.remove([one for one in self._world.units if one.owner in (ME, ENEMY)])
        else:
            self._begin()

    def _begin(self) -> None:
        """Let the enemies attack; the units are on the map."""
        attack = self._rule.attack
        for unit in self._world.units if attack else ():
            if unit.type.mobile:
                self._placement.stray(unit, STRAY)
        if attack == "units":
            self._attack_units()
        elif attack:
            self._attack_point(attack)

    def apply(self) -> int:
        """Begin again if both sides are dead; returns NEVER, because only a death matters."""
        world = self._world
        if world.loop < self._begins_at:
            return self._begins_at
        begins, self._begins_at = self._begins_at > 0, 0
        if begins or not any(unit.owner in (ME, ENEMY) for unit in world.units):
            for group in self._groups:
                place_group(world, self._placement, group)
            self._begin()
        return NEVER

    def _attack_point(self, points: tuple[Point, ...]) -> None:
        """Let all enemies attack one point: a random one between the first and the last."""
        (x, y), (last_x, last_y) = points[0], points[-1]
        if len(points) > 1:
            share = self._world.chance.random()
            x, y = x + (last_x - x) * share, y + (last_y - y) * share
        for unit in self._attackers():
            orders.give(self._world, unit, Order(OrderKind.ATTACK, x, y, 0), queued=False)

    def _attack_units(self) -> None:
        """Let each enemy attack the nearest of the client's units."""
        mine = self._world.owned_by(ME)
        for unit in self._attackers() if mine else ():
            target = min(mine, key=partial(_distance, unit))
            order = Order(OrderKind.ATTACK, 0.0, 0.0, target.tag)
            orders.give(self._world, unit, order, queued=False)

    def _attackers(self) -> list[Unit]:
        return [unit for unit in self._world.owned_by(ENEMY) if unit.type.mobile]


def _distance(unit: Unit, other: Unit) -> float:
    return way_to(unit, other.x, other.y)[2]


class HuntRule:
    """The rule of a `Hunt`."""

    def __init__(self, rule: Hunt, world: World) -> None:
        self._every_loops = rule.every_loops
        self._world = world
        world.reaction_loops = REACTION_LOOPS

    def start(self) -> None:
        """Do nothing: the first scan comes in the first loop that is due."""

    def apply(self) -> int:
        """Scan if this loop is due; returns the next loop that is due."""
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
