"""Mining: workers walk to a deposit, wait for their turn, gather, and bring the load home.

A trip brings 5 minerals or 4 gas. An SCV occupies a mineral field for 45 loops (2.786 s), and then
stands for 8 loops more. An SCV occupies a refinery for 32 loops (1.981 s). The time to turn and to
accelerate (`START_LOOPS`) is fitted so that one SCV on a near field brings 39 to 45 minerals in 960
loops. A MULE makes nine trips of 25 minerals, and gathers 2.05 times as long as an SCV.

One SCV and one MULE at a time gather from a deposit. If a worker finds a mineral field occupied, it
goes to a near field with fewer workers of the same type. A worker without a better field waits.

Workers at work walk straight, or around obstacles. They walk through other units, as gathering
workers do in the real game. The time to turn and to accelerate is added at the beginning of a walk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.files import MULE, TOWN_HALLS
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.units import Deposit, Errand, Order, Point, Site, Unit, way_to
from sc2standin.simulation.world import World

MINERALS_A_TRIP, VESPENE_A_TRIP = 5, 4
MINERALS_A_TRIP_OF_A_MULE = 25
MINERAL_LOOPS, VESPENE_LOOPS = 45, 32
"""For how many loops an SCV occupies a mineral field (2.786 s) and a refinery (1.981 s)."""
MINERAL_LOOPS_OF_A_MULE = 92
"""How long a MULE occupies a mineral field, in loops."""
PAUSE_LOOPS = 8
"""How long a worker stands after it has gathered minerals, in loops."""
NEAR_CELLS = 10.0
"""Greatest distance of a field to which a worker changes by itself, in cells."""

MINERALS_LEFT, VESPENE_LEFT = 1800, 2250
"""Initial content of a mineral field and of a geyser."""


class Mining:
    """The workers that gather, in one episode."""

    def __init__(self, world: World, walking: Walking, earn: Callable[[int, int], None]) -> None:
        self._world, self._walking = world, walking
        self._earn = earn
        """The function to call for each delivery, with its minerals and its gas."""

    def gather(self, worker: Unit) -> None:
        """Begin a trip to the deposit of the worker's order."""
        if any(worker.cargo):
            worker.workplace = worker.order.target_tag
            self.bring_home(worker)
            return
        deposit = self._deposit(worker) or self._other(worker)
        if deposit is None:
            orders.finish(self._world, worker)
            return
        worker.workplace = deposit.tag
        if worker.order.target_tag != deposit.tag:
            worker.order = Order(OrderKind.GATHER, 0.0, 0.0, deposit.tag)
        self._walking.walk_to(worker, deposit, self._arrive)

    def bring_home(self, worker: Unit) -> None:
        """Begin the walk to the nearest town hall."""
        homes = [
            unit
            for unit in self._world.units
            if unit.type in TOWN_HALLS
            and unit.owner == worker.owner
            and not isinstance(unit.job, Site)
        ]
        if not homes or not any(worker.cargo):
            orders.finish(self._world, worker)
            return
        home = min(homes, key=lambda unit: way_to(worker, unit.x, unit.y)[2])
        worker.order = Order(OrderKind.RETURN, 0.0, 0.0, home.tag)
        if self._walking.touches(worker, home):
            self._deliver(worker)
        else:
            self._walking.walk_to(worker, home, self._deliver)

    def _arrive(self, worker: Unit) -> None:
        """Let an arrived worker gather; at an occupied deposit, it goes to another one or waits."""
        loop, deposit = self._world.loop, self._deposit(worker)
        if deposit is None:
            self.gather(worker)
            return
        job = deposit.job
        assert isinstance(job, Deposit)
        is_mule, minerals = worker.type is MULE, deposit.type.has_minerals
        free_at = job.mules_free_at if is_mule else job.free_at
        if free_at > loop:
            other = self._emptier(worker) if minerals else None
            if other is None:
                # In real games three SCVs bring 145 minerals or 162 gas a minute from one deposit.
                # A worker waits one loop more so that its income matches real games.
                worker.job = Errand(free_at + 1, self._arrive)
                return
            worker.order = Order(OrderKind.GATHER, 0.0, 0.0, other.tag)
            self.gather(worker)
            return
        if is_mule:
            free_at = job.mules_free_at = loop + MINERAL_LOOPS_OF_A_MULE
        else:
            free_at = job.free_at = loop + (MINERAL_LOOPS if minerals else VESPENE_LOOPS)
        worker.job = Errand(free_at + (PAUSE_LOOPS if minerals else 0), self._take)

    def _take(self, worker: Unit) -> None:
        """Load the worker at the end of its gathering, and send it home."""
        deposit = self._deposit(worker)
        if deposit is None:
            self.gather(worker)
            return
        job = deposit.job
        assert isinstance(job, Deposit)
        minerals = deposit.type.has_minerals
        amount = min(_amount(worker, minerals=minerals), job.left)
        job.left -= amount
        worker.cargo = (amount, 0) if minerals else (0, amount)
        if job.left == 0:
            alert = sc_pb.MineralsExhausted if minerals else sc_pb.VespeneExhausted
            self._world.news.alert(worker.owner, alert)
            if minerals:
                self._world.remove([deposit])
        self.bring_home(worker)

    def _deliver(self, worker: Unit) -> None:
        """Unload the worker at the town hall; then begin its next order, or let it gather again."""
        self._earn(*worker.cargo)
        worker.cargo = (0, 0)
        if worker.queue or not worker.workplace:
            orders.finish(self._world, worker)
            return
        worker.order = Order(OrderKind.GATHER, 0.0, 0.0, worker.workplace)
        self.gather(worker)

    def _deposit(self, worker: Unit) -> Unit | None:
        """The target of a worker's order, if something can be gathered from it."""
        unit = self._world.by_tag.get(worker.order.target_tag)
        if unit is None or not can_gather(unit, worker.owner):
            return None
        return unit if isinstance(unit.job, Deposit) and unit.job.left > 0 else None

    def _other(self, worker: Unit) -> Unit | None:
        """The nearest mineral field within `NEAR_CELLS` of a worker."""
        return self._nearest(worker, [unit for unit in self._world.units if unit.type.has_minerals])

    def _emptier(self, worker: Unit) -> Unit | None:
        """The nearest field that, if the worker joins it, is less crowded than the worker's own."""
        world = self._world
        crowd = Counter(one.workplace for one in world.workers if one.type is worker.type)
        least = crowd[worker.workplace] - 1
        fields = [
            unit for unit in world.units if unit.type.has_minerals and crowd[unit.tag] < least
        ]
        return self._nearest(worker, fields)

    def _nearest(self, worker: Unit, deposits: list[Unit]) -> Unit | None:
        nearest, least = None, NEAR_CELLS
        for unit in deposits:
            distance = way_to(worker, unit.x, unit.y)[2]
            if distance < least:
                nearest, least = unit, distance
        return nearest


def _amount(worker: Unit, *, minerals: bool) -> int:
    """The load that a worker takes from a deposit, if the deposit has enough left."""
    if worker.type is MULE:
        return MINERALS_A_TRIP_OF_A_MULE
    return MINERALS_A_TRIP if minerals else VESPENE_A_TRIP


def can_gather(unit: Unit, owner: int) -> bool:
    """True for mineral fields, and for the owner's refineries that are finished."""
    kind: UnitType = unit.type
    return kind.has_minerals or (
        kind.has_vespene and unit.owner == owner and isinstance(unit.job, Deposit)
    )


START_LOOPS = 16
"""The extra loops of a walk, because a worker first turns and accelerates.

Nine of the 16 loops result from an SCV's acceleration of 2.5 cells per second squared. Seven of the
16 loops are fitted to a worker's income.
"""
TINY_CELLS = 1e-3
"""If the next straight stretch is shorter than this (in cells), no way leads nearer to the goal."""
Then = Callable[[Unit], None]


@dataclass(frozen=True)
class _Walk:
    """The goal of a worker's walk, and what the worker does there (`then`)."""

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
        """Let a worker walk until it is within `touch` of a point, or of a target's centre."""
        self._routes.update()
        self._go_on(_Walk(goal, touch, then, target), START_LOOPS, worker)

    def _go_on(self, walk: _Walk, start_loops: int, worker: Unit) -> None:
        """Let a worker walk the next leg."""
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
            if left < TINY_CELLS:  # the worker has arrived
                worker.job = Errand(world.loop + 1, then)
                return
            then = partial(self._go_on, walk, 0)
        loops = start_loops + math.ceil(left / worker.type.step)
        share = left / distance / loops
        worker.facing = math.atan2(way_y, way_x) % math.tau
        worker.job = Errand(world.loop + loops, then, way_x * share, way_y * share)

    def step_aside(self, site: Unit) -> None:
        """Move units on the ground, including the builder, off the cells of a new structure."""
        self._routes.update()
        blocks = self._routes.blocks
        under = set(blocks.under(site.type, site.x, site.y))
        for unit in self._world.units:
            if unit.type.mobile and not unit.type.flies and blocks.at(unit.x, unit.y) in under:
                unit.x, unit.y = blocks.free_point(unit.x, unit.y)
        self._world.orders_changed()


def _touch(worker: Unit, target: Unit) -> float:
    """The distance between the centres of a worker that walks straight and a unit that it touches.

    A unit with a footprint is a rectangle whose corners are cut off at the unit's radius. A town
    hall counts as a circle, because some clients let workers stop on this circle.
    """
    if target.type in TOWN_HALLS:
        return target.type.radius + worker.type.radius
    way_x, way_y, distance = way_to(worker, target.x, target.y)
    edge = target.type.radius
    for half, part in zip(target.type.footprint, (way_x, way_y), strict=True):
        if half and part:
            edge = min(edge, half * distance / abs(part))
    return edge + worker.type.radius
