"""Production: structures train units, one at a time, and send them to their rally point.

Rules it keeps: a unit is paid for when it is ordered, and begun when there is supply for it; a
structure has five places.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.unit_types import UnitType
from sc2pool.standin.simulation import orders
from sc2pool.standin.simulation.economy.jobs import Factory
from sc2pool.standin.simulation.paths.routes import Routes
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import STOPPED, Order, Point, Unit, World, way_to

RINGS, PLACES_A_RING = 12, 16
"""Places around a structure that are tried for a new unit."""
RING_SPACING = 2.2
"""Distance between two rings of such places, in radii of the unit."""
PLACES = 5
"""Units that a structure trains and has queued at most."""


class Production:
    """The structures that train, in one episode."""

    def __init__(
        self,
        world: World,
        terrain: Terrain,
        routes: Routes,
        owner: int,
        created: Callable[[UnitType], None],
    ) -> None:
        self._world, self._terrain, self._routes = world, terrain, routes
        self._owner, self._created = owner, created

    def has_place(self, factory: Unit) -> bool:
        """True if one more unit can be ordered."""
        return factory.order.kind != OrderKind.TRAIN or 1 + len(factory.queue) < PLACES

    def order(self, factory: Unit, order: Order) -> None:
        """Train the unit of an order that is paid, after those before it."""
        if factory.order.kind == OrderKind.TRAIN:
            factory.queue.append(order)
        else:
            factory.order = order

    def cancel(self, factory: Unit, place: int) -> UnitType | None:
        """Take the unit at this place out of the queue; None if there is none."""
        orders_made = [factory.order, *factory.queue]
        if not (isinstance(factory.job, Factory) and 0 <= place < len(orders_made)):
            return None
        kind = orders_made.pop(place).makes
        if kind is None:
            return None
        if place == 0:
            factory.job.done_at = 0
        factory.order, factory.queue[:] = (orders_made or [STOPPED])[0], orders_made[1:]
        return kind

    def food_begun(self) -> float:
        """Supply of the units in production."""
        return sum(
            unit.order.makes.food
            for unit in self._world.structures[self._owner]
            if isinstance(unit.job, Factory) and unit.job.done_at and unit.order.makes
        )

    def cancel_last(self, factory: Unit) -> UnitType | None:
        """Cancel the unit that was ordered last; returns its type, None if there is none."""
        if factory.order.makes is None:
            return None
        if factory.queue:
            return factory.queue.pop().makes
        kind, factory.order = factory.order.makes, STOPPED
        if isinstance(factory.job, Factory):
            factory.job.done_at = 0
        return kind

    def advance(self, free_food: Callable[[], float]) -> None:
        """Begin and finish units, for one loop."""
        loop = self._world.loop
        for factory in self._world.structures[self._owner]:
            job, kind = factory.job, factory.order.makes
            if not isinstance(job, Factory) or kind is None:
                continue
            if not job.done_at:
                if free_food() >= kind.food:
                    job.done_at = loop + int(kind.build_time_loops)
            elif loop >= job.done_at:
                job.done_at = 0
                factory.order = factory.queue.pop(0) if factory.queue else STOPPED
                self._create(factory, kind, job)

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
        self._created(kind)
        for order in job.rally:
            orders.give(self._world, unit, order, queued=False)
