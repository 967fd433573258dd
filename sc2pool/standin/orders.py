"""Orders of single units: give, queue and finish them.

Every change makes `movement` plan again.
"""

from __future__ import annotations

from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.world import STOPPED, Order, Unit, World

QUEUE_LIMIT = 32
"""Maximum number of queued orders behind the current one, as in the real game."""


def give(world: World, unit: Unit, order: Order, *, queued: bool) -> bool:
    """Give a unit an order, now or after its queued orders; False if its queue is full."""
    if queued and unit.order.kind != OrderKind.IDLE:
        if len(unit.queue) >= QUEUE_LIMIT:
            return False
        unit.queue.append(order)
        world.orders_changed()
        return True
    # An order that the unit has already changes nothing; a patrol begins at the unit's place.
    if unit.queue or unit.order != order or order.kind == OrderKind.PATROL:
        unit.queue.clear()
        _begin(world, unit, order)
    return True


def finish(world: World, unit: Unit) -> None:
    """End a unit's order and begin its next one."""
    _begin(world, unit, unit.queue.pop(0) if unit.queue else STOPPED)


def reach_point(world: World, unit: Unit) -> bool:
    """A unit has reached its point: end its order, or turn its patrol back; True if it turned."""
    if unit.order.kind != OrderKind.PATROL or unit.queue:
        finish(world, unit)
        return False
    there = unit.order.x, unit.order.y
    unit.order = Order(OrderKind.PATROL, *unit.patrol_from, 0)
    unit.patrol_from = there
    world.orders_changed()
    return True


def forget_all(world: World) -> None:
    """Stop all units, as after the start of a new wave."""
    for unit in world.units:
        unit.order = STOPPED
        unit.queue.clear()
        unit.engaged = 0
    world.disturb()


def _begin(world: World, unit: Unit, order: Order) -> None:
    unit.order = order
    unit.patrol_from = unit.x, unit.y
    unit.engaged = 0
    world.orders_changed()
