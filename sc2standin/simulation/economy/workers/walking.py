"""The ways of workers on their errands: straight, or around obstacles.

Workers walk through other units, as gathering workers do in the real game. The time to turn and to
accelerate is added at the beginning of a walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sc2standin.data.unit_types import TOWN_HALLS
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.units import Errand, Point, Unit, way_to
from sc2standin.simulation.world import World

START_LOOPS = 16
"""The extra loops of a walk, because a worker first turns and accelerates.

Nine loops follow from its acceleration, 2.5 cells per second squared; the others are fitted, see
`mining`.
"""
TINY_CELLS = 1e-3
"""A leg shorter than this means that the worker cannot come nearer."""
Then = Callable[[Unit], None]


@dataclass(frozen=True)
class _Walk:
    """The goal of a worker's walk, and its activity there."""

    goal: Point
    touch: float
    """The distance to the goal at which the walk ends, in cells."""
    then: Then
    target: Unit | None


class Walking:
    """The walks of one episode's workers."""

    def __init__(self, world: World, routes: Routes) -> None:
        self._world, self._routes = world, routes

    def touches(self, worker: Unit, target: Unit) -> bool:
        """True if a worker is at most one step away from a unit."""
        return way_to(worker, target.x, target.y)[2] - _touch(worker, target) <= worker.type.step

    def walk_to(self, worker: Unit, target: Unit, then: Then) -> None:
        """Let a worker walk until it touches a unit."""
        self.walk(worker, (target.x, target.y), _touch(worker, target), then, target)

    def walk(
        self, worker: Unit, goal: Point, touch: float, then: Then, target: Unit | None = None
    ) -> None:
        """Let a worker walk until it is within `touch` of a point, or of a target's middle."""
        self._routes.update()
        self._go_on(_Walk(goal, touch, then, target), START_LOOPS, worker)

    def _go_on(self, walk: _Walk, start_loops: int, worker: Unit) -> None:
        """Walk the next leg."""
        world, then = self._world, walk.then
        way_x, way_y, distance = way_to(worker, *walk.goal)
        left = max(0.0, distance - walk.touch)
        if left == 0.0:
            worker.job = Errand(world.loop + 1, then)
            return
        share = left / distance
        end = worker.x + way_x * share, worker.y + way_y * share
        leg = self._routes.leg((worker.x, worker.y), end, walk.target)
        if leg != end:
            way_x, way_y, distance = way_to(worker, *leg)
            left = distance
            if left < TINY_CELLS:  # the worker cannot come nearer
                worker.job = Errand(world.loop + 1, then)
                return
            then = partial(self._go_on, walk, 0)
        loops = start_loops + math.ceil(left / worker.type.step)
        share = left / distance / loops
        worker.facing = math.atan2(way_y, way_x) % math.tau
        worker.job = Errand(world.loop + loops, then, way_x * share, way_y * share)

    def step_aside(self, site: Unit) -> None:
        """Move units on the ground, also the builder, from the cells of a new structure."""
        self._routes.update()
        blocks = self._routes.blocks
        under = set(blocks.under(site.type, site.x, site.y))
        for unit in self._world.units:
            if unit.type.mobile and not unit.type.flies and blocks.at(unit.x, unit.y) in under:
                unit.x, unit.y = blocks.free_point(unit.x, unit.y)
        self._world.orders_changed()


def _touch(worker: Unit, target: Unit) -> float:
    """The distance of the middles when a worker that walks straight touches a unit.

    A unit with a footprint is a rectangle whose corners are cut off at its radius. A town hall
    accepts a load at its radius, because clients that stop there depend on that.
    """
    if target.type in TOWN_HALLS:
        return target.type.radius + worker.type.radius
    way_x, way_y, distance = way_to(worker, target.x, target.y)
    edge = target.type.radius
    for half, part in zip(target.type.footprint, (way_x, way_y), strict=True):
        if half and part:
            edge = min(edge, half * distance / abs(part))
    return edge + worker.type.radius
