"""Path finding around cliffs, structures and resources, on maps that have such obstacles.

* Class Blocks: the blocked cells, and the units that block them.
* Class Field: the distances of cells to a goal.
* Class Routes: the next straight leg of a unit's way, on maps whose obstacles may change.
* Class Detours: the next point of a unit's way on maps of battles, where only cliffs are obstacles.

Path finding treats a unit as a point that may touch obstacles. Other units do not block a way.

Routes: a unit walks straight if nothing is in its way. Otherwise it takes the shortest way to its
goal, in straight legs. A leg leads to the farthest point of the way that can be reached straight.

The work for a leg is bounded: a field of distances has as many cells as the map, and few fields are
kept. A unit that chases another one takes no detour of more than CHASE_CELLS. A leg is computed
again when the goal moves, when something was built or destroyed, and after LEG_LOOPS.

Blocks: a cell is free, blocked by the ground, or blocked by the structure or resource on it. Cells
are numbered row by row, with a border of blocked cells around the map, so that each cell has eight
neighbours.

Fields: the distances are those of the shortest way along free cells. A field grows from its goal
until it reaches the farthest unit that needs it. The field is kept, so all units with the same goal
share it, and a unit near the goal costs little.

Detours: class `Routes` finds the way of each unit separately, because obstacles may change. Cliffs
do not change, so class `Detours` finds a way once for each pair of cells, and keeps it, even for
later episodes. A unit's way then costs one look-up in a table. If no way leads to the goal, a unit
walks straight to the cliff, and slides along it.

Keeping fields and ways only saves time: a new search would give the same result.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.map_reader.scenario import Scenario
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import Point, Unit, Way, way_to
from sc2standin.simulation.world import World

FIELDS = 64
"""The most fields that are kept; each takes about 70 KB on a map of 88 x 96 cells."""
CHASE_CELLS = 24
"""Longest detour to a unit that moves, in cells."""
LEG_LOOPS = 32
"""The loops after which a leg is computed again, because its unit may have been pushed aside."""
LONGEST_LOOKAHEAD = 24
"""The end of a leg is searched among this many next cells of the way."""


@dataclass(slots=True)
class _Leg:
    """The point to which a unit walks now (`end`), and the goal of its whole way."""

    goal: Point
    target: int
    version: int
    until: int
    end: Point


class Routes:
    """The ways of one episode's units."""

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world = world
        self.blocks = Blocks(world, terrain)
        self._fields: OrderedDict[tuple[int, int], Field] = OrderedDict()
        self._legs: dict[Unit, _Leg] = {}
        self.update()

    def update(self) -> None:
        """Forget all fields and legs if a structure was built or destroyed."""
        if self.blocks.update():
            self._fields.clear()
            self._legs.clear()

    def way(self, unit: Unit, x: float, y: float, target: Unit | None = None) -> Way:
        """The next straight leg of a unit's way to a point, or to a point beside a target."""
        goal = x, y
        tag = 0 if target is None else target.tag
        leg = self._legs.get(unit)
        if (
            leg is None
            or leg.goal != goal
            or leg.target != tag
            or leg.version != self.blocks.version
            or leg.until <= self._world.loop
            or (abs(leg.end[0] - unit.x) < 1e-6 and abs(leg.end[1] - unit.y) < 1e-6)
        ):
            until = self._world.loop + LEG_LOOPS
            end = self.leg((unit.x, unit.y), goal, target)
            leg = self._legs[unit] = _Leg(goal, tag, self.blocks.version, until, end)
        return way_to(unit, *leg.end)

    def forget_dead(self) -> None:
        """Forget the legs of units that have died."""
        by_tag = self._world.by_tag
        self._legs = {unit: leg for unit, leg in self._legs.items() if unit.tag in by_tag}

    def leg(self, start: Point, goal: Point, target: Unit | None = None) -> Point:
        """The end of the first straight leg from a start to a goal."""
        free = self.blocks.free_until(start, goal, 0 if target is None else target.tag)
        if free == goal:
            return goal
        blocks = self.blocks
        cell = blocks.free_cell(*start)
        if cell != blocks.at(*start):  # the unit first leaves a place that was built on
            return blocks.middle(cell)
        field = self._field(goal, target)
        chase = target is not None and target.type.mobile
        if field.distance(cell, CHASE_CELLS * STRAIGHT if chase else FAR) == FAR:
            return free
        ahead: list[int] = []
        while len(ahead) < LONGEST_LOOKAHEAD and (cell := field.next(cell)):
            ahead.append(cell)
        if not ahead:  # the unit is as near to its goal as possible
            return free
        return self._farthest_straight(start, ahead)

    def length(self, start: Point, goal: Point) -> float:
        """The length of the way between two points, in cells; infinite without a way."""
        blocks = self.blocks
        start, goal = blocks.free_point(*start), blocks.free_point(*goal)
        if blocks.free_until(start, goal) == goal:
            return math.dist(start, goal)
        fifths = self._field(goal, None).distance(blocks.at(*start))
        return math.inf if fifths == FAR else fifths / STRAIGHT

    def is_blocked(self, x: float, y: float) -> bool:
        """True if units cannot walk onto this point."""
        return self.blocks.cells[self.blocks.at(x, y)] != FREE

    def _field(self, goal: Point, target: Unit | None) -> Field:
        """The distances to a goal; for a structure, to the cells around it."""
        blocks, fields = self.blocks, self._fields
        standing = target if target is not None and target.type.blocks else None
        key = (0, blocks.at(*goal)) if standing is None else (standing.tag, 0)
        field = fields.get(key)
        if field is not None:
            fields.move_to_end(key)
            return field
        cells = [blocks.free_cell(*goal)] if standing is None else self._around(standing)
        free = [cell for cell in cells if blocks.cells[cell] == FREE]
        field = fields[key] = Field(blocks.cells, blocks.row, free)
        if len(fields) > FIELDS:
            fields.popitem(last=False)
        return field

    def _around(self, target: Unit) -> list[int]:
        """The cells around those on which a structure stands."""
        blocks, row = self.blocks, self.blocks.row
        under = set(blocks.under(target.type, target.x, target.y))
        steps = (1, -1, row, -row, row + 1, row - 1, 1 - row, -1 - row)
        return sorted({cell + step for cell in under for step in steps} - under)

    def _farthest_straight(self, start: Point, ahead: list[int]) -> Point:
        """The middle of the farthest of the cells `ahead` to which a unit can walk straight."""
        blocks = self.blocks
        good, bad = 0, len(ahead)  # the next cell of a way is always reached straight
        step = 1
        while good + step < bad:
            end = blocks.middle(ahead[good + step])
            if blocks.free_until(start, end) == end:
                good += step
                step *= 2
            else:
                bad = good + step
            step = min(step, max(1, (bad - good) // 2))
        return blocks.middle(ahead[good])


FREE, NO_GROUND = 0, -1
NEAR_CELLS = 12
"""A free cell near a blocked cell is searched up to this distance, in cells."""


class Cells:
    """The cells of a map. In this class only the ground blocks cells; `Blocks` adds units."""

    def __init__(self, terrain: Terrain) -> None:
        self._terrain = terrain
        self.row = terrain.width + 2
        """The number of cells in a row, with the border."""
        border = [NO_GROUND] * self.row
        self.cells = list(border)
        """The state of each cell, which is FREE, NO_GROUND, or the tag of the unit on the cell."""
        for line in terrain.open_cells.tolist():
            kinds = (FREE if is_open else NO_GROUND for is_open in line)
            self.cells += [NO_GROUND, *kinds, NO_GROUND]
        self.cells += border

    def at(self, x: float, y: float) -> int:
        """The cell of a point; points off the map belong to the border."""
        column = min(max(math.floor(x), -1), self._terrain.width)
        row = min(max(math.floor(y), -1), self._terrain.height)
        return (row + 1) * self.row + column + 1

    def middle(self, cell: int) -> Point:
        """The middle of a cell."""
        row, column = divmod(cell, self.row)
        return column - 0.5, row - 0.5

    def free_cell(self, x: float, y: float) -> int:
        """The free cell nearest to a point; the point's own cell if no near cell is free."""
        own = self.at(x, y)
        if self.cells[own] == FREE:
            return own
        best, least = own, math.inf
        for ring in range(1, NEAR_CELLS + 1):
            if ring - 1 > least:  # the cells of this ring are farther away than the best cell
                break
            for dx, dy in _ring(ring):
                cell = self.at(x + dx, y + dy)
                if self.cells[cell] == FREE:
                    middle_x, middle_y = self.middle(cell)
                    distance = math.hypot(middle_x - x, middle_y - y)
                    if distance < least:
                        best, least = cell, distance
        return best

    def free_point(self, x: float, y: float) -> Point:
        """The point itself if its cell is free, else the middle of the nearest free cell."""
        cell = self.free_cell(x, y)
        return (x, y) if cell == self.at(x, y) else self.middle(cell)

    def free_until(self, start: Point, end: Point, ignored: int = FREE) -> Point:
        """The end of a straight line, or its last point before a blocked cell.

        The cell of the start does not count as blocked, nor do the cells under the unit with the
        tag `ignored`.
        """
        cells, row = self.cells, self.row
        (x0, y0), (x1, y1) = start, end
        way_x, way_y = x1 - x0, y1 - y0
        step_x, step_y = (1 if way_x > 0 else -1), (1 if way_y > 0 else -1)
        cell = self.at(x0, y0)
        # The shares of the line's length at which it enters the next column and the next row.
        share_x = ((math.floor(x0) + (step_x > 0)) - x0) / way_x if way_x else math.inf
        share_y = ((math.floor(y0) + (step_y > 0)) - y0) / way_y if way_y else math.inf
        every_x = abs(1.0 / way_x) if way_x else math.inf
        every_y = abs(1.0 / way_y) if way_y else math.inf
        left = abs(math.floor(x1) - math.floor(x0)) + abs(math.floor(y1) - math.floor(y0))
        share = 0.0
        while left > 0:
            if abs(share_x - share_y) < 1e-9 and left > 1:  # cells beside a corner must be free
                sides = cells[cell + step_x], cells[cell + step_y * row]
                if any(side not in (FREE, ignored) for side in sides):
                    break
                share = share_x
                cell += step_x + step_y * row
                share_x += every_x
                share_y += every_y
                left -= 2
            elif share_x < share_y:
                share = share_x
                cell += step_x
                share_x += every_x
                left -= 1
            else:
                share = share_y
                cell += step_y * row
                share_y += every_y
                left -= 1
            if not 0 <= cell < len(cells) or cells[cell] not in (FREE, ignored):
                break
        else:
            return end
        # End a little before the edge of the blocked cell, so that the point is in a free cell.
        share = max(0.0, share - 1e-3 / max(abs(way_x), abs(way_y)))
        return x0 + way_x * share, y0 + way_y * share


class Blocks(Cells):
    """The blocked cells of one episode.

    Attributes:
        version: a number that changes when `cells` changes.
    """

    def __init__(self, world: World, terrain: Terrain) -> None:
        super().__init__(terrain)
        self._world, self._ground = world, self.cells
        self.version = 0
        self._population_version = -1
        self._standing: list[tuple[Unit, UnitType]] = []

    def update(self) -> bool:
        """Mark the cells of all structures and resources; True if the cells have changed."""
        if self._population_version == self._world.population_version:
            return False
        self._population_version = self._world.population_version
        standing = [(unit, unit.type) for unit in self._world.units if unit.type.blocks]
        if standing == self._standing:
            return False
        self._standing = standing
        self.cells = self._ground.copy()
        for unit, kind in standing:
            for cell in self.under(kind, unit.x, unit.y):
                if self.cells[cell] == FREE:
                    self.cells[cell] = unit.tag
        self.version += 1
        return True

    def under(self, kind: UnitType, x: float, y: float) -> Iterator[int]:
        """The cells on which a unit of this type blocks the way."""
        for column, row in cells_under(kind, x, y):
            yield self.at(column, row)


def cells_under(kind: UnitType, x: float, y: float) -> Iterator[tuple[int, int]]:
    """The cells (column, row) that a unit blocks; the corners of a large footprint stay free."""
    half_x, half_y = kind.footprint
    columns = range(round(x - half_x), round(x + half_x))
    rows = range(round(y - half_y), round(y + half_y))
    for row in rows:
        for column in columns:
            corner = row in (rows[0], rows[-1]) and column in (columns[0], columns[-1])
            if not (corner and half_x > 2.0):
                yield column, row


def _ring(size: int) -> Iterator[tuple[int, int]]:
    """The offsets of the cells on the edge of a square around a cell."""
    for step in range(-size, size + 1):
        yield step, -size
        yield step, size
    for step in range(1 - size, size):
        yield -size, step
        yield size, step


STRAIGHT, DIAGONAL = 5, 7
"""Lengths of a straight and a diagonal step, in fifths of a cell; 7/5 is near the root of 2."""
FAR = 1 << 30
"""The distance of a cell that is not reached."""


class Field:
    """The distances to one goal, in fifths of a cell.

    Args:
        cells: the cells of `Blocks`, in which blocked cells are not 0.
        row: the number of cells in a row.
        goal: the cells at which the distance is 0, all of them free.
    """

    def __init__(self, cells: list[int], row: int, goal: list[int]) -> None:
        self._cells = cells
        self._straight = (1, -1, row, -row)
        self._diagonal = tuple((a + b, a, b) for a in (1, -1) for b in (row, -row))
        self._distance = [FAR] * len(cells)
        self._waiting: dict[int, list[int]] = {0: list(goal)}
        """The cells from which the field still has to grow, by their distances."""
        self._level = 0
        """Distances below this number do not change any more."""
        for cell in goal:
            self._distance[cell] = 0

    def distance(self, cell: int, most: int = FAR) -> int:
        """The distance of a cell from the goal; FAR if no way is as short as `most`."""
        while self._waiting and self._distance[cell] >= self._level <= most:
            self._grow()
        found = self._distance[cell]
        return found if found < self._level or not self._waiting else FAR

    def next(self, cell: int) -> int:
        """The next cell on the way to the goal, or 0 at the goal; `cell` must have a distance."""
        distance, cells = self._distance, self._cells
        here = distance[cell]
        best, least = 0, here
        for step in self._straight:
            there = distance[cell + step]
            if there + STRAIGHT <= here and there < least:
                best, least = cell + step, there
        for step, beside, above in self._diagonal:
            there = distance[cell + step]
            if (
                there + DIAGONAL <= here
                and there < least
                and not cells[cell + beside]
                and not cells[cell + above]
            ):
                best, least = cell + step, there
        return best

    def _grow(self) -> None:
        """Let the field grow from all cells at the next distance."""
        level, distance, cells = self._level, self._distance, self._cells
        waiting = self._waiting
        for cell in waiting.pop(level, ()):
            if distance[cell] != level:  # a shorter way to the cell was found later
                continue
            there = level + STRAIGHT
            for step in self._straight:
                other = cell + step
                if there < distance[other] and not cells[other]:
                    distance[other] = there
                    waiting.setdefault(there, []).append(other)
            there = level + DIAGONAL
            for step, beside, above in self._diagonal:
                other = cell + step
                if (
                    there < distance[other]
                    and not cells[other]
                    and not cells[cell + beside]
                    and not cells[cell + above]
                ):
                    distance[other] = there
                    waiting.setdefault(there, []).append(other)
        self._level = level + 1


MOST_WAYS = 50_000
"""The most ways that are kept; they take about 10 MB. A full table of ways is cleared."""


@lru_cache(maxsize=2)
def detours_on(scenario: Scenario) -> Detours:
    """The ways of a map, which are kept for the map's next episodes."""
    return Detours(Terrain(scenario))


class Detours:
    """The ways of one map."""

    def __init__(self, terrain: Terrain) -> None:
        self._cells = Cells(terrain)
        self._fields: dict[int, Field] = {}
        """The distances to each goal."""
        self._next: dict[tuple[int, int], Point | None] = {}
        """The next point for each pair of start and goal cells; None if this point is the goal."""

    def next_point(self, x: float, y: float, goal_x: float, goal_y: float) -> Point:
        """The point to walk to from (x, y) on the way to a goal."""
        cells = self._cells
        pair = cells.at(x, y), cells.at(goal_x, goal_y)
        if pair not in self._next:
            if len(self._next) >= MOST_WAYS:
                self._next.clear()
                self._fields.clear()
            free = (cells.free_cell(*cells.middle(cell)) for cell in pair)
            self._next[pair] = self._find(*free)
        return self._next[pair] or (goal_x, goal_y)

    def _find(self, cell: int, goal: int) -> Point | None:
        """The farthest point of the way that is reached straight; None if it is the goal."""
        start = self._cells.middle(cell)
        if self._is_clear(start, self._cells.middle(goal)):
            return None
        if goal not in self._fields:
            self._fields[goal] = Field(self._cells.cells, self._cells.row, [goal])
        field = self._fields[goal]
        if field.distance(cell) == FAR:
            return None
        ahead = self._cells.middle(field.next(cell))
        while cell := field.next(cell):
            if not self._is_clear(start, self._cells.middle(cell)):
                break
            ahead = self._cells.middle(cell)
        return ahead

    def _is_clear(self, start: Point, end: Point) -> bool:
        """True if a unit can walk straight from one point to another."""
        return self._cells.free_until(start, end) == end
