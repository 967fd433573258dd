"""The rules of a map file: the places of units, and events in the game.

A map can have targets to collect, waves of enemies, the towns of a melee, a battle, or a hunt.

The method `apply` of a rule returns the earliest loop at which the rule can have another effect.
The game applies the rule again in that loop, or earlier if a unit is created or dies. Skipping the
loops in between changes nothing.

The rule of a melee puts a command centre and twelve workers for each player on the map.

In a battle the enemies attack. When both sides are dead, the battle begins again. In a hunt each
enemy without an order attacks the nearest of the client's units, at regular intervals. The
intervals are counted from the game's first loop, not from an enemy's creation. An enemy gets no
order if it has no weapon, or if its weapon cannot hit the nearest unit, because the game refuses
such an order. An enemy without an order still fires at units that come near.

Places and creep:
* All random places come from the episode's generator of random numbers. A new group of units keeps
  its distance to the units that are already on the map.
* Tumors spread creep by one cell every SPREAD_LOOPS loops, over ground on which units walk, up to a
  distance that the tumor's type sets. Without a tumor, creep withers by one cell every
  SPREAD_LOOPS loops. A game applies the rule of creep only after its first tumor was created.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from heapq import heapreplace
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.files import COMMAND_CENTER, SCV
from sc2standin.map_reader.fields import (
    Circle,
    Cluster,
    Column,
    Point,
    Points,
    Region,
    Ring,
    Scatter,
)
from sc2standin.map_reader.scenario import (
    MAX_UNITS,
    OFFSETS,
    Battle,
    Collect,
    Group,
    Hunt,
    MeleeRules,
    Waves,
)
from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import is_target
from sc2standin.simulation.terrain import Cells, Terrain
from sc2standin.simulation.units import ENEMY, ME, NEUTRAL, NEVER, Order, Unit, way_to
from sc2standin.simulation.world import World


class CollectRule:
    """Creates the targets of a `Collect` and adds the score of each target that a unit reaches."""

    def __init__(self, rule: Collect, world: World, placement: Placement) -> None:
        self._rule = rule
        self._targets = Group(rule.target, NEUTRAL, rule.count, rule.place)
        self._world = world
        self._placement = placement
        self._version = -1
        self._mine: list[Unit] = []
        self._scans: list[tuple[int, int, Unit]] = []
        """A heap of (loop, tag, target): the earliest loop at which a unit can reach the target."""
        self._lay_out()

    def apply(self) -> int:
        """Add the score of reached targets; returns the next loop at which to apply the rule."""
        world, rule = self._world, self._rule
        if self._version != world.population_version:
            self._version = world.population_version
            self._mine = [unit for unit in world.walkers if unit.owner == ME]
            self._scans = [(0, unit.tag, unit) for unit in world.units if unit.type is rule.target]
        if not self._mine:
            return NEVER
        taken = self._reached()
        if taken:
            world.scores[ME] += rule.score * len(taken)
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

    With `stalls`, the next wave does not come if the last two enemies die in the same loop.
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
        """The number of enemies when the rule was last applied; 1 before its first application."""
        self._size = sum(group.count for group in rule.units)
        self._world = world
        self._placement = placement

    def apply(self) -> int:
        """Start a wave if all enemies are dead and the map has room for it; returns NEVER.

        NEVER is right: only a death makes a wave due, and each death applies all rules again.
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
        """Create a group's units, with the surviving units of the group's type among them."""
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
    """Create the players' towns; returns the starting places, player 1's place first.

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
    """The mineral fields within 10 cells of a place, the nearest field first."""
    x, y = place
    fields = [
        (abs(unit.x - x) ** 2 + abs(unit.y - y) ** 2, unit.tag, unit)
        for unit in world.units
        if unit.type.has_minerals
    ]
    return [unit for square, _tag, unit in sorted(fields, key=lambda one: one[:2]) if square < 100]


# ---- battles and hunts ---------------------------------------------------------------------------


STRAY = 0.2
"""The largest random offset of a unit from its place in its group along each axis, in cells.

We do not know the units' places in the real game. Without a random offset the enemies would always
approach in the same way, and a battle of equal sides would always have the same winner.
"""
REACTION_LOOPS = 4
"""The longest time that a unit needs to aim at a target that it chooses by itself.

The number is calibrated with the win rates of SMAC's heuristic, which the README lists.
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
        if begins_at:
            world.remove([one for one in world.units if one.owner in (ME, ENEMY)])
        else:
            self._begin()

    def _begin(self) -> None:
        """Let the enemies attack; all units must be on the map already."""
        attack = self._rule.attack
        for unit in self._world.units if attack else ():
            if unit.type.mobile:
                self._placement.stray(unit, STRAY)
        if attack == "units":
            self._attack_units()
        elif attack:
            self._attack_point(attack)

    def apply(self) -> int:
        """Begin again if both sides are dead; returns NEVER, because a death applies all rules."""
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
        """Let all enemies attack one random point between the first and the last of `points`."""
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

    def apply(self) -> int:
        """Order attacks if an interval ends in this loop; returns the end of the next interval."""
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


# ---- places --------------------------------------------------------------------------------------


Floats = NDArray[np.float64]

EDGE_MARGIN = 2.0
"""Minimum distance of a placed unit to the edge of the playable area, in cells."""
LINE_SPACING = 1.5
"""Distance between neighbours in a line, in cells; less if the line would be too long."""
LINE_JITTER = 0.25
"""Maximum random offset of a unit from its place in a line, so that waves differ."""
_TOUCH = 1e-6
"""The largest overlap of two neighbours that counts as a rounding error, in cells."""
CANDIDATES = 128
"""How many points are tried for a unit of a scattered group; if none fits, the best is taken."""
TRIED_SINGLY = 8
"""The number of points that are tried one by one, because nearly always one of them fits."""

_Rule: TypeAlias = tuple[list[Point], float]
"""A list of points, and the distance that a place must keep to each of these points."""


class Placement:
    """Finds places for units, with the episode's random generator."""

    def __init__(self, terrain: Terrain, rng: np.random.Generator) -> None:
        self._terrain = terrain
        self._edge_low, self._edge_high = terrain.low, terrain.high
        self._low = terrain.low + EDGE_MARGIN
        self._high = terrain.high - EDGE_MARGIN
        self._rng = rng
        self._side = 0
        self._middles: dict[Region, NDArray[np.float64]] = {}
        """The centre of a wave's columns in each region, valid until a side is drawn again."""

    def draw_side(self) -> None:
        """Draw the side of the map that the place `side` means from now on."""
        self._side = int(self._rng.integers(2))
        self._middles.clear()

    @property
    def side(self) -> int:
        """The side of the map that the place `side` means now: 0 or 1."""
        return self._side

    def points(self, group: Group, count: int, units: list[Unit]) -> Floats:
        """The places for `count` new units of a group; the given `units` are on the map already."""
        match group.place:
            case "random":
                points = self._rng.uniform(self._low, self._high, (count, 2))
            case Circle(centre, radius, first_degrees):
                degrees = np.arange(count, dtype=np.float64) * (360.0 / count) + first_degrees
                points = _polar(centre, np.full(count, radius), degrees)
            case Ring(centre, inner, outer):
                distances = self._rng.uniform(inner, outer, count)
                points = _polar(centre, distances, self._rng.uniform(0.0, 360.0, count))
            case Scatter() as place:
                points = self._scatter(place, count, group.owner, units)
            case Column() as place:
                points = self._column(place, count)
            case Points(choices):
                points = np.array(choices[self._rng.integers(len(choices))])
            case Cluster() as place:
                points = self._cluster(place, group, units)
            case side:
                points = self._line(count, opposite=side == "opposite")
        return points

    def stray(self, unit: Unit, most: float) -> None:
        """Move a unit at random, by up to `most` cells along each axis, if it can stand there."""
        offset_x, offset_y = self._rng.uniform(-most, most, 2).tolist()
        x, y = unit.x + offset_x, unit.y + offset_y
        if self._terrain.walkable(x, y):
            unit.x, unit.y = x, y

    def _line(self, count: int, *, opposite: bool) -> Floats:
        """A vertical line of places at one side."""
        x = (self._low, self._high)[self._side ^ int(opposite)][0]
        room = float(self._high[1] - self._low[1])
        spacing = min(LINE_SPACING, room / max(1, count - 1))
        y = (self._low[1] + self._high[1]) / 2 + spacing * (np.arange(count) - (count - 1) / 2)
        line = np.column_stack([np.full(count, x), y])
        return line + self._rng.uniform(-LINE_JITTER, LINE_JITTER, line.shape)

    def _column(self, place: Column, count: int) -> Floats:
        region = place.regions[self._side ^ int(place.side == "opposite")]
        if region not in self._middles:
            self._middles[region] = self._rng.uniform(region[:2], region[2:])
        column = np.tile(self._middles[region], (count, 1))
        column[:, 1] += place.spacing * (np.arange(count) - (count - 1) / 2)
        # A long column is clipped at the edge of the map; units that overlap push each other apart.
        return np.clip(column, self._edge_low, self._edge_high)

    def _scatter(self, place: Scatter, count: int, owner: int, units: list[Unit]) -> Floats:
        """Random places, found one by one, because each keeps its distance to earlier ones."""
        low, high = place.region[:2], place.region[2:]
        player = [(unit.x, unit.y) for unit in units if unit.owner == ME]
        others = [(unit.x, unit.y) for unit in units if unit.owner == owner]
        rules = [
            (others, place.apart),
            ([place.hole_centre], place.hole_radius),
            (player, place.from_player),
        ]
        for candidates in self._rng.uniform(low, high, (count, CANDIDATES, 2)):
            others.append(_first_free(candidates, rules) or _with_least_lack(candidates, rules))
        return np.array(others[-count:])

    def _cluster(self, place: Cluster, group: Group, units: list[Unit]) -> Floats:
        """The free places nearest to the centre, on a square grid of the units' diameter."""
        centre, spacing = place.centre, 2.0 * group.type.radius
        if group.owner == ENEMY:
            spacing = -spacing
        kind, there = group.type, [unit for unit in units if unit.type.aloft == group.type.aloft]
        taken = [(unit.x, unit.y, unit.type.radius) for unit in there]
        points: list[Point] = []
        for x, y in _grid(centre, spacing, group.count + len(there)):
            touch = kind.radius - _TOUCH
            free = all(math.hypot(x - at_x, y - at_y) >= r + touch for at_x, at_y, r in taken)
            if free and (kind.aloft or self._terrain.walkable(x, y)):
                points.append((x, y))
                taken.append((x, y, kind.radius))
                if len(points) == group.count:
                    return np.array(points)
        # Units for which no place is free begin at the centre, and push each other apart.
        return np.array(points + [centre] * (group.count - len(points)))


def place_group(world: World, placement: Placement, group: Group, more: int = 0) -> list[Unit]:
    """Create the units of a group, and `more` additional units of the same type."""
    count = group.count + more
    points = placement.points(group, count, world.units)
    return world.spawn(group.type, group.owner, points.tolist())


def _polar(centre: Point, distances: Floats, degrees: Floats) -> Floats:
    """The points at these distances and angles around a centre."""
    angles = np.radians(degrees)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(centre + directions * distances[:, None])


def _grid(centre: Point, spacing: float, count: int) -> list[Point]:
    """At least 4 * `count` points of a square grid, the nearest to the centre first.

    With a negative spacing the grid is rotated by 180 degrees.
    """
    reach = math.isqrt(count) + 2
    steps = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    steps.sort(key=lambda step: (step[0] ** 2 + step[1] ** 2, abs(step[0]), step[1], -step[0]))
    return [(centre[0] + spacing * i, centre[1] + spacing * j) for i, j in steps]


def _first_free(candidates: Floats, rules: list[_Rule]) -> Point | None:
    """Of the first TRIED_SINGLY candidates, the first that keeps all distances; else None."""
    for x, y in candidates[:TRIED_SINGLY].tolist():
        if all(
            math.hypot(x - at_x, y - at_y) >= apart
            for points, apart in rules
            for at_x, at_y in points
        ):
            return x, y
    return None


def _with_least_lack(candidates: Floats, rules: list[_Rule]) -> Point:
    """The first candidate that keeps all distances, or the one that violates them least."""
    spare = np.min([_nearest(candidates, points) - apart for points, apart in rules], axis=0)
    x, y = candidates[np.argmax(np.minimum(spare, 0.0))].tolist()
    return x, y


def _nearest(points: Floats, others: list[Point]) -> Floats:
    """Each point's distance to the nearest one of `others`; infinite if `others` is empty."""
    if not others:
        return np.full(len(points), np.inf)
    offsets = points[:, None, :] - np.array(others)
    return np.asarray(np.hypot(offsets[..., 0], offsets[..., 1]).min(axis=1))


# ---- creep ---------------------------------------------------------------------------------------


SPREAD_LOOPS = 32
"""The number of loops between two steps of the creep's growth; we chose this number."""


class Creep:
    """The growth and decay of the creep of one episode (`World.creep`)."""

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world, self._terrain = world, terrain

    def apply(self) -> int:
        """Let creep grow and wither if a step is due; returns the loop of the creep's next step."""
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
    """The given cells, and the cells beside them."""
    grown = cells.copy()
    grown[1:] |= cells[:-1]
    grown[:-1] |= cells[1:]
    grown[:, 1:] |= cells[:, :-1]
    grown[:, :-1] |= cells[:, 1:]
    return grown
