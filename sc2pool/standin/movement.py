"""Walking: from orders to velocities.

A *plan* gives every unit a velocity that is valid until an expected event (an arrival, a unit that
comes into reach) or an unexpected one (`World.orders_changed`). Between plans a loop is one
addition to the position column, so a map on which little happens is cheap; the result is the same
as planning every loop. During combat every loop is planned.

Units walk straight, at full speed from the first loop, and turn immediately. The ground is open,
so the straight line is the shortest path.
"""

from __future__ import annotations

import math

import numpy as np

from sc2pool.standin import combat, orders, unit_types
from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.terrain import Terrain
from sc2pool.standin.world import NEVER, Floats, World

TINY = 1e-9
ARRIVED = 1e-6
"""A unit that is closer than this to its goal, in cells, has arrived."""
CROWD_SPACING = 0.5
"""In a crowd of n, a pushed unit has arrived within this many cells times the square root of n."""


class Mover:
    """Plans and runs the loops of one episode."""

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world = world
        self._terrain = terrain
        self._roster = combat.Roster(world)
        self._read_orders()

    def run_loop(self) -> None:
        """Advance the world by one game loop: fight, walk, count."""
        world = self._world
        if world.loop >= world.plan_until:
            self._plan()
        world.pos += world.velocity
        world.loop += 1

    def _read_orders(self) -> None:
        """Compute what depends on the orders alone; it is kept until an order changes."""
        world = self._world
        orders.drop_lost_targets(world)
        self._orders_version = world.orders_version
        self._walks = world.order >= OrderKind.MOVE
        self._to_a_point = self._walks & (world.order_tag == 0)
        self._followers = np.flatnonzero(world.order_tag)
        self._followed = world.rows_of(world.order_tag[self._followers])
        radius = unit_types.RADIUS[world.type_row]
        self._touch = radius[self._followers] + radius[self._followed]
        self._step = unit_types.STEP[world.type_row]

    def _plan(self) -> None:
        world = self._world
        if self._roster.version != world.population_version:
            self._roster = combat.Roster(world)
        roster = self._roster
        geometry = combat.measure(world, roster) if roster.crowd else None
        push = combat.push_apart(roster, geometry) if geometry is not None else None
        goal, way, distance = self._ways(push)
        fights = False
        if geometry is not None and roster.has_enemies:
            fights = self._fight(geometry, goal)
            way = goal - world.pos
            distance = _length(way)
        quiet_loops = self._set_velocities(way, distance)
        if push is not None:
            self._give_way(push)
        if fights or push is not None or len(self._followers):
            quiet_loops = 1.0
        elif geometry is not None and quiet_loops > 1.0:
            velocity = world.velocity[roster.rows]
            contact = combat.loops_until_contact(roster, geometry, velocity)
            quiet_loops = min(quiet_loops, contact)
        world.plan_until = world.loop + max(1, int(min(quiet_loops, NEVER)))

    def _ways(self, push: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Goal, offset and distance of each unit, once the orders of arrived units are ended.

        A patrol turns at most once a loop: a unit may be at both of its ends. So this ends: all
        other orders of a unit come from its queue, which is finite.
        """
        world = self._world
        turned = np.zeros(world.count, np.bool_)
        while True:
            if self._orders_version != world.orders_version:
                self._read_orders()
            goal = np.where(self._walks[:, None], world.order_point, world.pos)
            if len(self._followers):
                goal[self._followers] = self._beside_followed()
            way = goal - world.pos
            distance = _length(way)
            arrived = self._to_a_point & (distance < self._tolerance(push)) & ~turned
            if not arrived.any():
                return goal, way, distance
            for row in np.flatnonzero(arrived).tolist():
                turned[row] = orders.reach_point(world, row)

    def _tolerance(self, push: Floats | None) -> Floats | float:
        """The distance to its goal within which a unit has arrived."""
        if push is None:
            return ARRIVED
        # Only one unit can stand on the point itself; the others stop around it.
        rows = self._roster.rows
        near = np.full(self._world.count, ARRIVED)
        near[rows[push.any(axis=1)]] = CROWD_SPACING * math.sqrt(len(rows))
        return near

    def _beside_followed(self) -> Floats:
        """For each unit that follows another unit, the point at which the two touch."""
        here = self._world.pos[self._followers]
        offset = self._world.pos[self._followed] - here
        distance = _length(offset)
        share = np.maximum(0.0, 1.0 - self._touch / np.maximum(distance, TINY))
        return np.asarray(here + offset * share[:, None])

    def _fight(self, geometry: combat.Geometry, goal: Floats) -> bool:
        """Run combat; units with a target stand or chase it. True if any unit has a target."""
        world, rows = self._world, self._roster.rows
        engagement = combat.engage(world, self._roster, geometry)
        stands = rows[engagement.in_range]
        goal[stands] = world.pos[stands]
        chasing = (engagement.target >= 0) & ~engagement.in_range
        goal[rows[chasing]] = world.pos[rows[engagement.target[chasing]]]
        return bool((engagement.target >= 0).any() or engagement.in_range.any())

    def _set_velocities(self, way: Floats, distance: Floats) -> float:
        """Set velocity and facing; returns the loops until the first arrival."""
        world = self._world
        loops = distance / np.maximum(self._step, TINY)
        walking = distance > 0.0
        if not walking.any():
            world.velocity[:] = 0.0
            return math.inf
        world.velocity = way / np.maximum(loops, 1.0)[:, None]
        heading = np.arctan2(way[:, 1], way[:, 0]) % (2 * np.pi)
        world.facing = np.where(walking, heading, world.facing)
        return float(loops[walking].min())

    def _give_way(self, push: Floats) -> None:
        world, rows = self._world, self._roster.rows
        there = world.pos[rows] + world.velocity[rows] + push
        np.clip(there, self._terrain.low, self._terrain.high, out=there)
        world.velocity[rows] = there - world.pos[rows]


def _length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2))
