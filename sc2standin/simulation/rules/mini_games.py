"""The rules of a map: collect targets, start waves.

A rule returns the earliest loop at which it can have another effect. It is applied again in that
loop, or earlier after a unit was created or died. So skipping the loops in between changes nothing.

The rule of a melee puts a command centre and twelve workers for each player on the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapreplace
from operator import attrgetter

from sc2standin.data.unit_types import COMMAND_CENTER, SCV
from sc2standin.map_reader.scenario import MAX_UNITS, OFFSETS, Collect, Group, MeleeRules, Waves
from sc2standin.simulation.rules.placement import Placement, place_group
from sc2standin.simulation.units import ENEMY, ME, NEUTRAL, NEVER, Point, Unit
from sc2standin.simulation.world import World


class CollectRule:
    """Creates the targets of a `Collect` and scores those that are reached."""

    def __init__(self, rule: Collect, world: World, placement: Placement) -> None:
        self._rule = rule
        self._targets = Group(rule.target, NEUTRAL, rule.count, rule.place)
        self._world = world
        self._placement = placement
        self._version = -1
        self._mine: list[Unit] = []
        self._scans: list[tuple[int, int, Unit]] = []
        """A heap: the earliest loop at which a target can be reached, its tag, the target."""

    def start(self) -> None:
        """Lay out the first targets."""
        self._lay_out()

    def apply(self) -> int:
        """Score the targets that were reached; returns the next loop to apply the rule."""
        world, rule = self._world, self._rule
        if self._version != world.population_version:
            self._version = world.population_version
            self._mine = [unit for unit in world.walkers if unit.owner == ME]
            self._scans = [(0, unit.tag, unit) for unit in world.units if unit.type is rule.target]
        if not self._mine:
            return NEVER
        taken = self._reached()
        if taken:
            world.score += rule.score * len(taken)
            world.minerals += rule.minerals * len(taken)
            self._replace(taken)
            return world.loop + 1
        return self._scans[0][0] if self._scans else NEVER

    def _reached(self) -> list[Unit]:
        """The targets within reach of a unit, the oldest first."""
        loop, reach = self._world.loop, self._rule.reach
        places = [(unit.x, unit.y) for unit in self._mine]
        fastest = max(unit.type.step for unit in self._mine)
        reached = []
        while self._scans and self._scans[0][0] <= loop:
            _, tag, target = self._scans[0]
            target_x, target_y = target.x, target.y
            nearest = math.inf
            for x, y in places:
                dx, dy = target_x - x, target_y - y
                nearest = min(nearest, dx * dx + dy * dy)
            distance = math.sqrt(nearest)
            if distance <= reach:
                reached.append(target)
            earliest = loop + max(1, int((distance - reach) / fastest))
            heapreplace(self._scans, (earliest, tag, target))
        reached.sort(key=attrgetter("tag"))
        return reached

    def _replace(self, taken: list[Unit]) -> None:
        world, rule = self._world, self._rule
        if rule.taken == "moves":
            places = self._placement.points(self._targets, len(taken), world.units)
            world.put(taken, places.tolist())
            return
        world.bury(taken)
        if all(unit.type is not rule.target for unit in world.units):
            self._lay_out()

    def _lay_out(self) -> None:
        place_group(self._world, self._placement, self._targets)


class WavesRule:
    """Sends the next wave when no enemy is left, and calls `begun` afterwards.

    With `stalls`, the wave does not come if the last two enemies die in the same loop.
    """

    def __init__(
        self,
        rule: Waves,
        world: World,
        placement: Placement,
        begun: Callable[[], None] | None,
        stalls: bool,
    ) -> None:
        self._rule, self._begun, self._stalls = rule, begun, stalls
        self._enemies = 1
        """The number of enemies when the rule was last applied; 1 before that."""
        self._size = sum(group.count for group in rule.units)
        self._world = world
        self._placement = placement

    def start(self) -> None:
        """Do nothing: the first wave is on the map from the start."""

    def apply(self) -> int:
        """Start a wave if all enemies are dead and there is room; returns NEVER.

        Only a death can change the condition, and after a death the rule is applied anyway.
        """
        world = self._world
        left, before = len(world.owned_by(ENEMY)), self._enemies
        self._enemies = left
        is_full = len(world.units) + self._size > MAX_UNITS
        if left or is_full or (self._stalls and before != 1):
            return NEVER
        self._placement.draw_side()
        if self._rule.survivors == "rejoin":
            for group in self._rule.units:
                self._rejoin(group)
        else:
            for group in self._rule.units:
                place_group(world, self._placement, group)
        self._enemies = len(world.owned_by(ENEMY))
        if self._begun is not None:
            self._begun()
        return NEVER

    def _rejoin(self, group: Group) -> None:
        """Create the units of a group, and create the survivors of its type again among them."""
        world = self._world
        survivors = [
            unit for unit in world.units if unit.owner == group.owner and unit.type is group.type
        ]
        world.remove(survivors)
        units = place_group(world, self._placement, group, more=len(survivors))
        for unit, survivor in zip(units, survivors, strict=False):
            unit.life = survivor.life


def found_towns(
    world: World, rules: MeleeRules, placement: Placement, players: tuple[int, ...]
) -> tuple[Point, Point]:
    """Create the players' towns; returns the starts, the client's first.

    The workers stand on the two sides of the command centre that face the minerals.
    """
    one, other = rules.starts
    starts = (one, other) if placement.side == 0 else (other, one)
    for owner, (x, y) in zip(players, starts, strict=False):
        world.spawn(COMMAND_CENTER, owner, [(x, y)])
        fields = fields_near(world, (x, y))
        to_x = -1.0 if sum(field.x - x for field in fields) > 0 else 1.0
        to_y = 1.0 if sum(field.y - y for field in fields) > 0 else -1.0
        world.spawn(SCV, owner, [(x + dx * to_x, y + dy * to_y) for dx, dy in OFFSETS])
    return starts


def fields_near(world: World, place: Point) -> list[Unit]:
    """The mineral fields within 10 cells of a place, the nearest first."""
    x, y = place
    fields = [
        (abs(unit.x - x) ** 2 + abs(unit.y - y) ** 2, unit.tag, unit)
        for unit in world.units
        if unit.type.has_minerals
    ]
    return [unit for square, _tag, unit in sorted(fields, key=lambda one: one[:2]) if square < 100]
