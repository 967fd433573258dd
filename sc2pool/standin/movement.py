"""Walking: from orders to velocities.

A *plan* gives every unit a velocity that is valid until an expected event (an arrival, a unit that
comes into reach) or an unexpected one (`World.orders_changed`). Between plans a loop is one
addition for each unit that moves, so a map on which little happens is cheap; the result is the same
as planning every loop. During combat every loop is planned.

Units walk straight, at full speed from the first loop, and turn immediately. The ground is open,
so the straight line is the shortest path.
"""

from __future__ import annotations

import math
from math import sqrt

from sc2pool.standin import combat, orders
from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.pairs import TINY, pairs_of
from sc2pool.standin.terrain import Terrain
from sc2pool.standin.world import NEVER, Point, Unit, World

ARRIVED = 1e-6
"""A unit that is closer than this to its goal, in cells, has arrived."""
CROWD_SPACING = 0.5
"""In a crowd of n, a pushed unit has arrived within this many cells times the square root of n."""
_MOVE = OrderKind.MOVE


class Mover:
    """Plans and runs the loops of one episode."""

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world = world
        self._terrain = terrain
        self._pairs = pairs_of(world)
        self._moving: list[tuple[Unit, float, float]] = []
        """The units that move, each with its velocity, in cells per loop."""

    def run_loop(self) -> None:
        """Advance the world by one game loop: fight, walk, count."""
        world = self._world
        if world.loop >= world.plan_until:
            self._plan()
        for unit, vx, vy in self._moving:
            unit.x += vx
            unit.y += vy
        world.loop += 1

    def _plan(self) -> None:
        world = self._world
        if self._pairs.version != world.population_version:
            self._pairs = pairs_of(world)
        pairs = self._pairs
        units = pairs.units
        crowd = len(units) > 1
        pairs.measure()
        pushes = pairs.pushes() if crowd else None
        goals = self._goals(units, pushes)
        fights = pairs.hostile and combat.fight(world, pairs, goals)
        velocities, quiet_loops = _velocities(units, goals)
        if pushes is not None:
            self._give_way(units, velocities, pushes)
        if fights or pushes is not None or any(unit.order.target_tag for unit in units):
            quiet_loops = 1.0
        elif crowd and quiet_loops > 1.0:
            quiet_loops = min(quiet_loops, pairs.loops_until_contact(velocities))
        self._moving = [
            (unit, vx, vy)
            for unit, (vx, vy) in zip(units, velocities, strict=True)
            if vx != 0.0 or vy != 0.0
        ]
        world.plan_until = world.loop + max(1, int(min(quiet_loops, NEVER)))

    def _goals(self, units: list[Unit], pushes: list[Point] | None) -> list[Point | None]:
        """Where each unit walks to, None for where it is; orders of arrived units are ended."""
        goals: list[Point | None] = []
        # Only one unit of a crowd can stand on the point itself; the others stop around it.
        crowded = CROWD_SPACING * sqrt(len(units))
        for i, unit in enumerate(units):
            if unit.order.kind < _MOVE:
                goals.append(None)
                continue
            pushed = pushes is not None and pushes[i] != (0.0, 0.0)
            goals.append(self._goal(unit, crowded if pushed else ARRIVED))
        return goals

    def _goal(self, unit: Unit, tolerance: float) -> Point | None:
        """Where a unit walks to, once the orders that it has carried out are ended.

        A patrol turns at most once a loop: a unit may be at both of its ends. So this ends: all
        other orders of a unit come from its queue, which is finite.
        """
        world = self._world
        turned = False
        while True:
            kind, x, y, target_tag = unit.order
            if target_tag:
                target = world.by_tag.get(target_tag)
                if target is not None:
                    return _beside(unit, target)
                orders.finish(world, unit)
            elif kind < _MOVE:
                return None
            elif turned or _length(x - unit.x, y - unit.y) >= tolerance:
                return x, y
            else:
                turned = orders.reach_point(world, unit)

    def _give_way(self, units: list[Unit], velocities: list[Point], pushes: list[Point]) -> None:
        """Add the pushes to the velocities; no unit is pushed off the map."""
        low_x, low_y = self._terrain.x0, self._terrain.y0
        high_x, high_y = self._terrain.x1, self._terrain.y1
        for i, unit in enumerate(units):
            (vx, vy), (push_x, push_y) = velocities[i], pushes[i]
            x = min(max(unit.x + vx + push_x, low_x), high_x)
            y = min(max(unit.y + vy + push_y, low_y), high_y)
            velocities[i] = x - unit.x, y - unit.y


def _velocities(units: list[Unit], goals: list[Point | None]) -> tuple[list[Point], float]:
    """Turn the units to their goals; returns their velocities, and loops until one arrives."""
    velocities = [(0.0, 0.0)] * len(units)
    first_arrival = math.inf
    for i, goal in enumerate(goals):
        if goal is None:
            continue
        unit = units[i]
        way_x, way_y = goal[0] - unit.x, goal[1] - unit.y
        distance = _length(way_x, way_y)
        if distance > 0.0:
            loops = distance / unit.type.step
            first_arrival = min(first_arrival, loops)
            last = max(loops, 1.0)
            velocities[i] = way_x / last, way_y / last
            unit.facing = math.atan2(way_y, way_x) % math.tau
    return velocities, first_arrival


def _beside(unit: Unit, target: Unit) -> Point:
    """The point at which a unit that follows another one touches it."""
    x, y = target.x - unit.x, target.y - unit.y
    touch = unit.type.radius + target.type.radius
    share = max(0.0, 1.0 - touch / max(_length(x, y), TINY))
    return unit.x + x * share, unit.y + y * share


def _length(x: float, y: float) -> float:
    return sqrt(x * x + y * y)
