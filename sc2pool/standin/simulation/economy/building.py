"""Building: a worker walks to the place, pays, and stays until the structure is done.

Rules it keeps: a structure stands on the cells of its footprint, which lie in the playable area and
under no other structure or resource; units do not block it. A refinery stands on a geyser.
"""

from __future__ import annotations

from collections.abc import Callable

from s2clientprotocol import error_pb2 as error_pb

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.unit_types import UnitType
from sc2pool.standin.simulation import orders
from sc2pool.standin.simulation.economy.jobs import Deposit, Errand, Factory, Site
from sc2pool.standin.simulation.economy.mining import walk
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import ME, Order, Point, Unit, World

FIRST_LIFE = 0.1
"""Share of the hit points that a structure has at first."""


class Building:
    """The structures of one episode, from the order to the end of construction."""

    def __init__(
        self,
        world: World,
        terrain: Terrain,
        pay: Callable[[UnitType], error_pb.ActionResult.ValueType],
    ) -> None:
        self._world, self._terrain, self._pay = world, terrain, pay
        self._sites: list[Unit] = []

    def snap(self, kind: UnitType, x: float, y: float) -> Point | None:
        """The middle of the cells on which a structure would stand; None off the map."""
        if not self._terrain.on_map(x, y):
            return None
        odd = kind.footprint[0] % 1.0  # an odd number of cells has its middle in a cell
        return round(x - odd) + odd, round(y - odd) + odd

    def can_place(self, kind: UnitType, x: float, y: float) -> error_pb.ActionResult.ValueType:
        """Success, or why a structure cannot stand at this point."""
        half_x, half_y = kind.footprint
        terrain = self._terrain
        corners = ((x - half_x, y - half_y), (x + half_x, y + half_y))
        if not all(terrain.walkable(*corner) for corner in corners):
            return error_pb.CantBuildLocationInvalid
        for unit in self._world.units:
            reach_x, reach_y = half_x + unit.type.footprint[0], half_y + unit.type.footprint[1]
            if (
                unit.type.footprint[0]
                and abs(unit.x - x) < reach_x
                and abs(unit.y - y) < reach_y
                and not (kind.has_vespene and is_geyser(unit))
            ):
                return error_pb.CantBuildLocationInvalid
        return error_pb.Success

    def set_out(self, worker: Unit) -> None:
        """Walk to the place of the worker's order."""
        order = worker.order
        kind = order.makes
        assert kind is not None
        walk(self._world, worker, (order.x, order.y), kind.radius + worker.type.radius, self._start)

    def _start(self, worker: Unit) -> None:
        """The worker is there: pay and begin, or give up."""
        world, order = self._world, worker.order
        kind = order.makes
        assert kind is not None
        if (
            self.can_place(kind, order.x, order.y) != error_pb.Success
            or self._pay(kind) != error_pb.Success
        ):
            orders.finish(world, worker)
            return
        site = world.spawn(kind, ME, [(order.x, order.y)])[0]
        done_at = world.loop + int(kind.build_time_loops)
        site.job, site.life = Site(done_at), kind.life * FIRST_LIFE
        self._sites.append(site)
        world.count_units()  # what is not finished provides no supply
        worker.job = Errand(done_at, lambda one: self._finish(one, site), constructing=True)

    def _finish(self, worker: Unit, site: Unit) -> None:
        """The structure is done: it works, and the worker is free."""
        world = self._world
        self._sites.remove(site)
        if site.type.has_vespene:
            geyser = next(unit for unit in world.units if is_geyser(unit, site.x, site.y))
            site.job, geyser.job = geyser.job, None
            if not worker.queue and isinstance(site.job, Deposit):
                worker.queue.append(Order(OrderKind.GATHER, 0.0, 0.0, site.tag))
        else:
            site.job = Factory()
        world.count_units()
        orders.finish(world, worker)

    def grow(self) -> None:
        """Raise the hit points of what is being put up, for one loop."""
        for site in self._sites:
            kind = site.type
            more = kind.life * (1.0 - FIRST_LIFE) / kind.build_time_loops
            site.life = min(site.life + more, kind.life)


def is_geyser(unit: Unit, x: float | None = None, y: float | None = None) -> bool:
    """True for a geyser; with a point, for the one at this point."""
    at = x is None or (unit.x, unit.y) == (x, y)
    return unit.type.has_vespene and unit.type.invulnerable and at
