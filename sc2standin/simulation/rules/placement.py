"""The places of units on a map: points for the places of a map file, and the spread of creep.

Rules it keeps:
- All random places come from the episode's generator; a later group keeps its distance to the units
  on the map.
- Tumors spread creep by one cell every SPREAD_LOOPS loops, over ground on which units walk, up to a
  distance that the tumor's type sets. Without a tumor, creep withers at the same speed. A game has
  this rule from its first tumor on.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
from sc2standin.map_reader.scenario import Group
from sc2standin.simulation.terrain import Cells, Terrain
from sc2standin.simulation.units import ENEMY, ME, NEVER, Unit
from sc2standin.simulation.world import World

Floats = NDArray[np.float64]

EDGE_MARGIN = 2.0
"""Minimum distance of a placed unit to the edge of the playable area, in cells."""
LINE_SPACING = 1.5
"""Distance between neighbours in a line, in cells; less if there is not enough room."""
LINE_JITTER = 0.25
"""Maximum random offset of a unit from its place in a line, so that waves differ."""
_TOUCH = 1e-6
"""Overlap of two neighbours that is a rounding error, in cells."""
CANDIDATES = 128
"""Points tried for each unit of a scattered group; if none fits, the best one is taken."""
TRIED_SINGLY = 8
"""The first candidates are tried one by one, which is faster: nearly always one of them fits."""

_Rule: TypeAlias = tuple[list[Point], float]
"""Some points, and the distance to keep to each."""


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
        """The middle of the columns in each region, until a side is drawn again."""

    def draw_side(self) -> None:
        """Choose at random which of the two sides `side` means from now on."""
        self._side = int(self._rng.integers(2))
        self._middles.clear()

    @property
    def side(self) -> int:
        """The side that `side` means: 0 or 1."""
        return self._side

    def points(self, group: Group, count: int, units: list[Unit]) -> Floats:
        """Places for a group of `count` units, on a map with these units."""
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
        """Move a unit by up to `most` cells along each axis, if it can stand there."""
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
        """Random places, chosen one by one, because each keeps its distance to those before it."""
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
        # The rest has no room: these units push each other apart.
        return np.array(points + [centre] * (group.count - len(points)))


def place_group(world: World, placement: Placement, group: Group, more: int = 0) -> list[Unit]:
    """Create the units of a group, and some more of them."""
    count = group.count + more
    points = placement.points(group, count, world.units)
    return world.spawn(group.type, group.owner, points.tolist())


def _polar(centre: Point, distances: Floats, degrees: Floats) -> Floats:
    """Points at these distances and angles around a centre."""
    angles = np.radians(degrees)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(centre + directions * distances[:, None])


def _grid(centre: Point, spacing: float, count: int) -> list[Point]:
    """Points of a square grid, at least four times `count`, the nearest to the centre first.

    With a negative spacing the grid is rotated by 180 degrees.
    """
    reach = math.isqrt(count) + 2
    steps = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    steps.sort(key=lambda step: (step[0] ** 2 + step[1] ** 2, abs(step[0]), step[1], -step[0]))
    return [(centre[0] + spacing * i, centre[1] + spacing * j) for i, j in steps]


def _first_free(candidates: Floats, rules: list[_Rule]) -> Point | None:
    """The first of a few candidates that keeps all distances, or None."""
    for x, y in candidates[:TRIED_SINGLY].tolist():
        if all(
            math.hypot(x - at_x, y - at_y) >= apart
            for points, apart in rules
            for at_x, at_y in points
        ):
            return x, y
    return None


def _with_least_lack(candidates: Floats, rules: list[_Rule]) -> Point:
    """The first candidate that keeps all distances, or the one that falls short least."""
    spare = np.min([_nearest(candidates, points) - apart for points, apart in rules], axis=0)
    x, y = candidates[np.argmax(np.minimum(spare, 0.0))].tolist()
    return x, y


def _nearest(points: Floats, others: list[Point]) -> Floats:
    """Distance of each point to the nearest of the others; infinite without others."""
    if not others:
        return np.full(len(points), np.inf)
    offsets = points[:, None, :] - np.array(others)
    return np.asarray(np.hypot(offsets[..., 0], offsets[..., 1]).min(axis=1))


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
