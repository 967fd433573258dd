"""Routes: the next straight leg of a unit's way around what blocks it.

A unit walks straight if nothing is in its way. Otherwise it walks to the farthest point that it can
walk straight to on the shortest way to its goal, and from there on.

Rules it keeps: the work for a leg is bounded: a field of distances has as many cells as the map,
few fields are kept, and a chase looks only CHASE_CELLS around its target; a leg is drawn anew
when the goal moves, when something was built or destroyed, and after LEG_LOOPS.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from sc2standin.simulation.paths.blocks import FREE, Blocks
from sc2standin.simulation.paths.field import FAR, STRAIGHT, Field
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import Point, Unit, Way, way_to
from sc2standin.simulation.world import World

FIELDS = 64
"""Most fields that are kept; one takes about 70 KB on a map of 88 x 96 cells."""
CHASE_CELLS = 24
"""Longest detour to a unit that moves, in cells."""
LEG_LOOPS = 32
"""Loops after which a leg is drawn anew: other units may have pushed the walker aside."""
LONGEST_LOOKAHEAD = 24
"""Cells of the way among which the end of a leg is chosen."""


@dataclass(slots=True)
class _Leg:
    """Where a unit walks to now, and for which goal this was decided."""

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
        """Notice what was built or destroyed."""
        if self.blocks.update():
            self._fields.clear()
            self._legs.clear()

    def way(self, unit: Unit, x: float, y: float, target: Unit | None = None) -> Way:
        """The next leg of a unit's way to a point, or to a point beside a target."""
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
        """Forget the legs of units that are no more."""
        by_tag = self._world.by_tag
        self._legs = {unit: leg for unit, leg in self._legs.items() if unit.tag in by_tag}

    def leg(self, start: Point, goal: Point, target: Unit | None = None) -> Point:
        """The end of the first straight leg from a start to a goal."""
        free = self.blocks.free_until(start, goal, 0 if target is None else target.tag)
        if free == goal:
            return goal
        blocks = self.blocks
        cell = blocks.free_cell(*start)
        if cell != blocks.at(*start):  # something was built here: get out first
            return blocks.middle(cell)
        field = self._field(goal, target)
        chase = target is not None and target.type.mobile
        if field.distance(cell, CHASE_CELLS * STRAIGHT if chase else FAR) == FAR:
            return free
        ahead: list[int] = []
        while len(ahead) < LONGEST_LOOKAHEAD and (cell := field.next(cell)):
            ahead.append(cell)
        if not ahead:  # beside the target, or as near to the goal as can be
            return free
        return self._farthest_straight(start, ahead)

    def length(self, start: Point, goal: Point) -> float:
        """The length of the way between two points, in cells; infinite if there is none."""
        blocks = self.blocks
        start, goal = blocks.free_point(*start), blocks.free_point(*goal)
        if blocks.free_until(start, goal) == goal:
            return math.dist(start, goal)
        fifths = self._field(goal, None).distance(blocks.at(*start))
        return math.inf if fifths == FAR else fifths / STRAIGHT

    def is_blocked(self, x: float, y: float) -> bool:
        """True if no unit walks onto this point."""
        return self.blocks.cells[self.blocks.at(x, y)] != FREE

    def _field(self, goal: Point, target: Unit | None) -> Field:
        """The distances to a goal; those to a structure are distances to its edge."""
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
        """The cells around what a structure stands on."""
        blocks, row = self.blocks, self.blocks.row
        under = set(blocks.under(target.type, target.x, target.y))
        steps = (1, -1, row, -row, row + 1, row - 1, 1 - row, -1 - row)
        return sorted({cell + step for cell in under for step in steps} - under)

    def _farthest_straight(self, start: Point, ahead: list[int]) -> Point:
        """The middle of the last of these cells that can be walked to straight."""
        blocks = self.blocks
        good, bad = 0, len(ahead)  # the next cell of a way can always be walked to
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
