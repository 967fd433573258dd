"""Walking: computes units' velocities from their orders.

A *plan* gives every unit a velocity. A plan is valid until an expected event (an arrival, or a unit
that comes into reach) or an unexpected one (`World.orders_changed`). Between plans a loop costs one
addition for each unit that moves, so a map on which little happens takes little time. The result is
the same as with a plan for every loop. In combat, and with cloaked units, each loop has a new plan.

Units walk straight. A few types turn slowly: they stand until their facing is within a right angle
of the direction of their way. Most types are at full speed from the first loop; the others
accelerate from rest. On a map with `Routes`, units walk around obstacles, one straight leg after
the other. On a map with `Detours`, the detours give the next point of a unit's way. On a map
without `Routes` and `Detours`, all ways are straight.
"""

from __future__ import annotations

import math
from math import atan2, pi, sqrt, tau

from sc2standin.data.abilities import OrderKind
from sc2standin.simulation import orders
from sc2standin.simulation.fights.cloak import detect
from sc2standin.simulation.fights.combat import Bystanders, Combat, bystanders_of
from sc2standin.simulation.fights.damage import heal
from sc2standin.simulation.fights.pairs import STILL, TINY, pairs_of
from sc2standin.simulation.paths import Detours, Routes
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import NEVER, Point, Unit, Way, way_to
from sc2standin.simulation.world import World

ARRIVED = 1e-6
"""A unit that is closer than this to its goal, in cells, has arrived."""
CROWD_SPACING = 0.5
"""A held-up unit in a crowd of n has arrived within this number * sqrt(n) cells of its goal."""
HELD_UP_SHARE = 0.3
"""A unit is held up if it moves less than this share of the distance that it would move alone."""
SEARCH_INTERVAL_LOOPS = 4
"""Units that can attack bystanders look for them once in this many loops."""
_MOVE, _ATTACK, _CAST = OrderKind.MOVE, OrderKind.ATTACK, OrderKind.CAST


class Mover:
    """Plans and runs the loops of one episode."""

    def __init__(
        self, world: World, terrain: Terrain, routes: Routes | None, detours: Detours | None
    ) -> None:
        self._world = world
        self._terrain = terrain
        self._routes, self._detours = routes, detours
        self._combat = Combat(world, routes)
        self._pairs = pairs_of(world)
        self._bystanders: Bystanders | None = bystanders_of(world)
        self._moving: list[tuple[Unit, float, float]] = []
        """The units that move, each with its velocity, in cells per loop."""
        self._follows = False
        """True if in the newest plan a unit follows another unit, or a detour."""
        self._speeds_up = False
        """True if in the newest plan a unit still accelerates or turns."""

    def walk(self, loops: int) -> None:
        """Let the units walk for this many loops; the plan must be valid for all of them."""
        for _ in range(loops):  # add loop by loop, because a product would round differently
            for unit, vx, vy in self._moving:
                unit.x += vx
                unit.y += vy
        self._world.loop += loops

    def plan(self) -> None:
        """If the plan has ended, choose targets, fire, and give every unit a velocity."""
        world = self._world
        if world.loop < world.plan_until:
            return
        if world.cloaked:
            detect(world)
        if self._pairs.version != world.population_version:
            self._pairs = pairs_of(world)
            self._bystanders = bystanders_of(world)
            if self._routes is not None:
                self._routes.update()
                self._routes.forget_dead()
        pairs, bystanders = self._pairs, self._bystanders
        pairs.measure()
        self._follows = self._speeds_up = False
        ways = self._ways(pairs.units)
        fights = self._combat.fight(pairs, bystanders, ways)
        if pairs.healers:
            fights |= heal(world, pairs, ways)
        if self._detours is not None:
            self._go_around(self._detours, pairs.units, ways)
        if pairs.hostile:
            pairs.take_note(ways)
            pairs.steer(ways)
        touch = self._set_off(ways)
        world.plan_until = world.loop + 1
        if fights or touch or self._follows or self._speeds_up or world.cloaked:
            return
        loops = _loops_until_arrival(pairs.units, ways)
        if len(pairs.units) > 1 and loops > 1.0:
            velocities = {unit: (vx, vy) for unit, vx, vy in self._moving}
            loops = min(loops, pairs.loops_until_contact(velocities))
        if bystanders is not None:
            loops = min(loops, SEARCH_INTERVAL_LOOPS)
        world.plan_until = world.loop + max(1, int(min(loops, NEVER)))

    def _ways(self, units: list[Unit]) -> list[Way | None]:
        """The way of each unit according to its order; ends the orders of arrived units."""
        # In a crowd only one unit can stand on the goal itself; the others stop around it.
        crowded = CROWD_SPACING * sqrt(len(units))
        return [
            None
            if unit.order.kind < _MOVE
            else self._stand(unit)
            if not unit.type.step
            else self._way(unit, crowded if unit.held_up else ARRIVED)
            for unit in units
        ]

    def _stand(self, unit: Unit) -> Way | None:
        """End the orders of an immobile unit, up to the first order to attack a living unit."""
        while _MOVE <= unit.order.kind < OrderKind.LAND:
            if unit.order.kind == _ATTACK and unit.order.target_tag in self._world.by_tag:
                break
            orders.finish(self._world, unit)
        return None

    def _way(self, unit: Unit, tolerance: float) -> Way | None:
        """The way of a unit according to its order; ends orders that are carried out.

        The `while` loop ends, because a patrol turns at most once per game loop, even if both its
        ends are at one place. All other orders come from the unit's queue, which is finite.
        """
        world = self._world
        turned = False
        while True:
            kind, x, y, target_tag, *_ = unit.order
            if target_tag:
                target = world.by_tag.get(target_tag)
                if target is not None:
                    self._follows = True
                    routes = None if unit.type.aloft else self._routes
                    if routes is None and kind == _ATTACK and target_tag in self._pairs.index:
                        return None  # `combat` decides whether the unit walks
                    x, y = _beside(unit, target)
                    return way_to(unit, x, y) if routes is None else routes.way(unit, x, y, target)
                orders.finish(world, unit)
            elif kind < _MOVE:
                return None
            else:
                way = way_to(unit, x, y)
                routes = None if unit.type.aloft else self._routes
                if routes is not None and way[2] >= tolerance:
                    way = routes.way(unit, x, y)  # the way ends as near the goal as possible
                    if way[2] >= ARRIVED:
                        return way
                if turned or kind == _CAST or way[2] >= tolerance:  # `spells` ends orders to cast
                    return way
                turned = orders.reach_point(world, unit)

    def _go_around(self, detours: Detours, units: list[Unit], ways: list[Way | None]) -> None:
        """Lead the ways of units on the ground around cliffs."""
        for i, way in enumerate(ways):
            unit = units[i]
            if way is not None and not unit.type.aloft:
                x, y = detours.next_point(unit.x, unit.y, unit.x + way[0], unit.y + way[1])
                ways[i] = way_to(unit, x, y)
                self._follows = True

    def _set_off(self, ways: list[Way | None]) -> bool:
        """Set facing and velocity of each unit; True if units push each other apart."""
        units = self._pairs.units
        wishes_x, wishes_y = wishes = self._wishes(ways)
        apart = self._pairs.keep_apart(wishes_x, wishes_y) if len(units) > 1 else None
        all_x, all_y = apart or wishes
        moving = self._moving = []
        for i, unit in enumerate(units):
            vx, vy, wish_x, wish_y = all_x[i], all_y[i], wishes_x[i], wishes_y[i]
            unit.held_up = False
            if vx == vy == wish_x == wish_y == 0.0:
                continue
            if apart is not None or self._detours is not None:
                vx, vy = self._on_ground(unit, vx, vy)
                wish = sqrt(wish_x * wish_x + wish_y * wish_y)
                unit.held_up = sqrt(vx * vx + vy * vy) < HELD_UP_SHARE * wish
            if vx != 0.0 or vy != 0.0:
                moving.append((unit, vx, vy))
        return apart is not None

    def _wishes(self, ways: list[Way | None]) -> tuple[list[float], list[float]]:
        """Set facings; returns the velocities that the units would have without other units."""
        units = self._pairs.units
        vxs, vys = [0.0] * len(units), [0.0] * len(units)
        for i, (unit, way) in enumerate(zip(units, ways, strict=True)):
            if way is None:
                unit.pace = 0.0
                continue
            way_x, way_y, distance = way
            step = unit.type.step
            if unit.type.turn and distance > 0.0:
                off = (atan2(way_y, way_x) - unit.facing + pi) % tau - pi
                unit.facing = (unit.facing + max(-unit.type.turn, min(off, unit.type.turn))) % tau
                self._speeds_up |= abs(off) > unit.type.turn
                if abs(off) > pi / 2:  # the unit turns on the spot
                    continue
            if unit.type.gain and distance > 0.0:
                step = unit.pace = min(step, unit.pace + unit.type.gain)
                self._speeds_up |= step < unit.type.step
            if distance > 0.0 and step > 0.0:
                share = step / distance
                vxs[i], vys[i] = (way_x * share, way_y * share) if share < 1.0 else (way_x, way_y)
                if not unit.type.turn:
                    unit.facing = atan2(way_y, way_x) % tau
        return vxs, vys

    def _on_ground(self, unit: Unit, vx: float, vy: float) -> Point:
        """The velocity of a unit, changed so that the unit enters neither cliffs nor walls."""
        here_x, here_y = unit.x, unit.y
        there_x, there_y = here_x + vx, here_y + vy
        terrain, routes = self._terrain, self._routes
        low_x, low_y, high_x, high_y = terrain.bounds
        inside = low_x <= there_x <= high_x and low_y <= there_y <= high_y
        if self._detours is not None or not inside:
            there_x, there_y = terrain.slide(here_x, here_y, there_x, there_y, unit.type.aloft)
        # A unit must not be pushed into a wall, but a unit inside a wall may walk out of it.
        if (
            routes is not None
            and not unit.type.aloft
            and routes.is_blocked(there_x, there_y)
            and not routes.is_blocked(here_x, here_y)
        ):
            return STILL
        return there_x - here_x, there_y - here_y


def _loops_until_arrival(units: list[Unit], ways: list[Way | None]) -> float:
    """The number of loops until the first unit is at the end of its way."""
    loops = math.inf
    for unit, way in zip(units, ways, strict=True):
        if way is not None and way[2] > 0.0 and unit.type.step > 0.0:
            loops = min(loops, way[2] / unit.type.step)
    return loops


def _beside(unit: Unit, target: Unit) -> Point:
    """The point at which a unit that walks to a target touches the target."""
    x, y, distance = way_to(unit, target.x, target.y)
    touch = unit.type.radius + target.type.radius
    share = max(0.0, 1.0 - touch / max(distance, TINY))
    return unit.x + x * share, unit.y + y * share
