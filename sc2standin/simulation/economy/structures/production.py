"""Production: what structures make by themselves, and where new units stand.

Rules it keeps: a unit is paid for when it is ordered, and begun when there is supply for it; a
structure has five places and makes one thing at a time, with a reactor eight and two. What it
researches is in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import Research
from sc2standin.data.unit_types import BARE_ADD_ONS, REACTOR, TECH_LAB, UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.paths.routes import Routes
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import STOPPED, Factory, Order, Point, Site, Unit, way_to
from sc2standin.simulation.world import World

RINGS, PLACES_A_RING = 12, 16
"""Places around a structure that are tried for a new unit."""
RING_SPACING = 2.2
"""Distance between two rings of such places, in radii of the unit."""
PLACES, PLACES_WITH_REACTOR = 5, 8
"""Units that a structure trains and has queued at most."""
QUEUED = (OrderKind.TRAIN, OrderKind.RESEARCH)
"""The products that structures make one after the other."""


class Production:
    """The structures that make something, in one episode.

    Args:
        done: called with a structure and its order when it is done; a new unit is there then.
        loops_for: how long something takes to make.
    """

    def __init__(
        self,
        world: World,
        terrain: Terrain,
        routes: Routes,
        done: Callable[[Unit, Order], None],
        *,
        owner: int,
        loops_for: Callable[[UnitType | Research], int],
    ) -> None:
        self._world, self._terrain, self._routes = world, terrain, routes
        self._owner, self._loops_for, self._done = owner, loops_for, done

    def has_place(self, factory: Unit) -> bool:
        """True if one more unit can be ordered."""
        places = PLACES_WITH_REACTOR if self._has_reactor(factory) else PLACES
        return factory.order.makes is None or 1 + len(factory.queue) < places

    def has_tech_lab(self, factory: Unit) -> bool:
        """True if units that need a tech lab can be trained."""
        return self._add_on(factory) is TECH_LAB

    def _has_reactor(self, factory: Unit) -> bool:
        return self._add_on(factory) is REACTOR

    def _add_on(self, factory: Unit) -> UnitType | None:
        """The bare kind of the finished add-on beside a structure."""
        tag = factory.job.add_on if isinstance(factory.job, Factory) else 0
        unit = self._world.by_tag.get(tag) if tag else None
        finished = unit is not None and not isinstance(unit.job, Site)
        return BARE_ADD_ONS.get(unit.type) if unit is not None and finished else None

    def order(self, factory: Unit, order: Order) -> None:
        """Carry out an order that is paid, after those before it."""
        if factory.order.makes is not None:
            factory.queue.append(order)
        else:
            factory.order = order

    def cancel(self, factory: Unit, place: int) -> Order | None:
        """Take the order at this place out of the queue; None if it cannot be cancelled."""
        orders_made = (factory.order, *factory.queue)
        if not 0 <= place < len(orders_made) or not isinstance(factory.job, Factory):
            return None
        order = orders_made[place]
        if order.makes is None or order.kind == OrderKind.LIFT:
            return None
        _take(factory, factory.job, place)
        return order

    def food_begun(self) -> float:
        """Supply of the units in production."""
        return sum(
            order.makes.food
            for unit in self._world.structures[self._owner]
            if isinstance(unit.job, Factory) and unit.job.done_at
            for order in (unit.order, *unit.queue)[: len(unit.job.done_at)]
            if order.makes is not None
        )

    def advance(self, free_food: Callable[[], float]) -> None:
        """Begin and finish what structures make, for one loop."""
        loop = self._world.loop
        for factory in self._world.structures[self._owner]:
            job = factory.job
            if not isinstance(job, Factory) or factory.order.makes is None:
                continue
            for place in reversed(range(len(job.done_at))):
                if loop >= job.done_at[place]:
                    self._finish(factory, _take(factory, job, place), job)
            self._begin(factory, job, free_food)

    def _begin(self, factory: Unit, job: Factory, free_food: Callable[[], float]) -> None:
        """Begin the next orders of a structure, if there is supply for them."""
        waiting = (factory.order, *factory.queue)[len(job.done_at) :]
        if not waiting or (job.done_at and not self._has_reactor(factory)):
            return
        for order in waiting[: 2 - len(job.done_at) if self._has_reactor(factory) else 1]:
            kind = order.makes
            if kind is None or (kind.food and free_food() < kind.food):
                return
            # The loop in which it begins counts: real SCVs, of 272 loops, are born 271 apart.
            job.done_at.append(self._world.loop + self._loops_for(kind) - 1)

    def _finish(self, factory: Unit, order: Order, job: Factory) -> None:
        if order.kind == OrderKind.TRAIN and isinstance(order.makes, UnitType):
            self._create(factory, order.makes, job)
        self._done(factory, order)

    def _place(self, factory: Unit, kind: UnitType) -> Point:
        """The free place nearest to the front of a structure, else the front itself."""
        front = self._terrain.clamp(factory.x, factory.y - factory.type.radius - kind.radius)
        for ring in range(RINGS):
            distance = factory.type.radius + kind.radius * (1 + RING_SPACING * ring)
            for i in range(PLACES_A_RING):
                # From the front to both sides, alternately.
                turn = (i + 1) // 2 * (1 - i % 2 * 2) / PLACES_A_RING * math.tau
                x = factory.x + distance * math.sin(turn)
                y = factory.y - distance * math.cos(turn)
                if self._is_free(x, y, kind.radius):
                    return x, y
        return front

    def _is_free(self, x: float, y: float, radius: float) -> bool:
        return not self._routes.is_blocked(x, y) and all(
            way_to(unit, x, y)[2] >= unit.type.radius + radius for unit in self._world.walkers
        )

    def _create(self, factory: Unit, kind: UnitType, job: Factory) -> None:
        """Put a new unit in front of its structure."""
        self._routes.update()
        unit = self._world.spawn(kind, self._owner, [self._place(factory, kind)])[0]
        for order in job.rally:
            orders.give(self._world, unit, order, queued=False)


def _take(factory: Unit, job: Factory, place: int) -> Order:
    """Take an order out of a structure's queue."""
    waiting = [factory.order, *factory.queue]
    order = waiting.pop(place)
    del job.done_at[place : place + 1]
    factory.order, factory.queue[:] = (waiting or [STOPPED])[0], waiting[1:]
    return order
