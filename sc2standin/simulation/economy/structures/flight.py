"""Flight: barracks, factories, starports and town halls that have lifted off fly, and land.

Rules it keeps: they fly straight, over everything and through each other; landing takes a while, at
the end of which the place must be free, or they stay in the air.
"""

from __future__ import annotations

import math

from s2clientprotocol import error_pb2 as error_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.simulation import orders
from sc2standin.simulation.economy.workers.building import Building
from sc2standin.simulation.economy.workers.walking import Walking
from sc2standin.simulation.units import Factory, Unit, way_to
from sc2standin.simulation.world import World

LAND_LOOPS = 32
"""Time to land, in loops; the same as to lift off."""
_STANDING = (OrderKind.IDLE, OrderKind.HOLD)


class Flight:
    """A player's structures in the air, in one episode."""

    def __init__(self, world: World, building: Building, walking: Walking, owner: int) -> None:
        self._world, self._building, self._walking = world, building, walking
        self._owner = owner
        self._seen: list[Unit] = []
        """The structures at the last call; the world makes a new list when one changes."""
        self._afloat: list[Unit] = []

    def advance(self) -> None:
        """Fly and land for one loop."""
        if self._seen is not self._world.structures[self._owner]:
            self._seen = self._world.structures[self._owner]
            self._afloat = [one for one in self._seen if one.type.afloat]
        for unit in self._afloat:
            if isinstance(unit.job, Factory):
                self._fly(unit, unit.job)

    def _fly(self, unit: Unit, job: Factory) -> None:
        order, world = unit.order, self._world
        target = world.by_tag.get(order.target_tag)
        if order.target_tag and target is None:
            orders.finish(world, unit)
        elif order.kind not in _STANDING:
            goal = (order.x, order.y) if target is None else (target.x, target.y)
            way_x, way_y, distance = way_to(unit, *goal)
            if distance > unit.type.step:
                share = unit.type.step / distance
                unit.x += way_x * share
                unit.y += way_y * share
                unit.facing = math.atan2(way_y, way_x) % math.tau
            elif distance > 0.0:
                unit.x, unit.y = goal
            elif order.kind == OrderKind.LAND:
                self._land(unit, job)
                return
            elif target is None:
                orders.reach_point(world, unit)
        job.done_at.clear()  # a landing that was given up

    def _land(self, unit: Unit, job: Factory) -> None:
        """Come down, as far as one loop goes; the unit is above its place."""
        loop, kind = self._world.loop, unit.type.made_from
        if not job.done_at:
            job.done_at.append(loop + LAND_LOOPS)
        elif loop >= job.done_at[0] and kind is not None:
            job.done_at.clear()
            lands = self._building.can_place(kind, unit.x, unit.y) == error_pb.Success
            if lands:
                unit.queue.clear()
            orders.finish(self._world, unit)
            if lands:
                self._world.become(unit, kind)
                self._walking.step_aside(unit)
