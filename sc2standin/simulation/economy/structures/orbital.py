"""Orbital commands: what they do for energy, MULEs and scans.

Rules it keeps: a MULE gathers from the field at which it was called down, and its power is used up
after a while; a scan shows a part of the map for a while, and what is cloaked in it.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types import MULE
from sc2standin.simulation import orders
from sc2standin.simulation.paths.routes import Routes
from sc2standin.simulation.units import Order, Term, Unit
from sc2standin.simulation.world import Scan, World

ENERGY = 50.0
"""Energy of a MULE and of a scan."""
MULE_LOOPS = 1440
"""How long a MULE works: 90 s of 16 loops."""
SCAN_LOOPS = 196
"""How long a scan lasts: 12.2775 s of 16 loops."""
SCAN_CELLS = 13.0
"""Radius of a scan, as in the table of effects."""


class Orbital:
    """The MULEs and scans of a player's orbital commands in one episode."""

    def __init__(self, world: World, routes: Routes, owner: int) -> None:
        self._world, self._routes, self._owner = world, routes, owner
        self._mules: list[tuple[int, int]] = []
        """The loop at which each MULE ends, and its tag."""

    def cast(self, unit: Unit, order: Order) -> bool:
        """Carry out such an order; False if there is not enough energy."""
        if unit.energy < ENERGY:
            return False
        unit.energy -= ENERGY
        if order.kind == OrderKind.SCAN:
            until = self._world.loop + SCAN_LOOPS
            self._world.scans.append(Scan(self._owner, order.x, order.y, SCAN_CELLS, until))
        else:
            self._call_mule(order)
        return True

    def _call_mule(self, order: Order) -> None:
        world, target = self._world, self._world.by_tag.get(order.target_tag)
        place = (order.x, order.y) if target is None else (target.x, target.y)
        self._routes.update()
        (mule,) = world.spawn(MULE, self._owner, [self._routes.blocks.free_point(*place)])
        mule.term = Term(world.loop + MULE_LOOPS, MULE_LOOPS)
        self._mules.append((mule.term.until, mule.tag))
        if target is not None:
            gather = Order(OrderKind.GATHER, 0.0, 0.0, target.tag)
            orders.give(world, mule, gather, queued=False)

    def advance(self) -> None:
        """End what is over."""
        world = self._world
        while self._mules and self._mules[0][0] <= world.loop:
            _until, tag = self._mules.pop(0)
            if tag in world.by_tag:
                world.doomed.append(tag)
                world.news.alert(self._owner, sc_pb.MULEExpired)
        if world.scans:
            world.scans = [one for one in world.scans if one.until > world.loop]
