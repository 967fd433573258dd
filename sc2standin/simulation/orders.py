"""Orders of single units: give, queue and finish them.

After every change of an order `movement` plans again.
"""

from __future__ import annotations

from sc2standin.data.abilities import OrderKind
from sc2standin.simulation.units import NEVER, STOPPED, Errand, Order, Unit
from sc2standin.simulation.world import World

_GATHER = OrderKind.GATHER
QUEUE_LIMIT = 32
"""Maximum number of queued orders behind the current one, as in the real game."""


def give(world: World, unit: Unit, order: Order, *, queued: bool) -> bool:
    """Give a unit an order, now or after its queued orders; False if its queue is full."""
    errand = unit.job if isinstance(unit.job, Errand) else None
    bound = errand is not None and errand.bound
    busy = errand is not None and (errand.constructing or bound)
    if bound and not queued:
        unit.queue.clear()
    if bound and order.kind == OrderKind.IDLE:
        return True
    if busy and order.kind == OrderKind.IDLE:  # a stop makes a worker leave its site
        unit.queue.clear()
        finish(world, unit)
        return True
    if busy or (queued and unit.order.kind != OrderKind.IDLE):
        if is_full(unit):
            return False
        unit.queue.append(order)
        world.orders_changed()
        return True
    # A unit keeps an order that is given again, but a patrol begins again from the unit's place.
    if unit.queue or unit.order != order or order.kind == OrderKind.PATROL:
        unit.queue.clear()
        _begin(world, unit, order)
    return True


def is_full(unit: Unit) -> bool:
    """True if no more orders can be queued for the unit."""
    return len(unit.queue) >= QUEUE_LIMIT


def finish(world: World, unit: Unit) -> None:
    """End a unit's order and begin its next one."""
    _begin(world, unit, unit.queue.pop(0) if unit.queue else STOPPED)


def reach_point(world: World, unit: Unit) -> bool:
    """When a unit reaches its order's point, turn a patrol back (True) or end the order (False)."""
    if unit.order.kind != OrderKind.PATROL or unit.queue:
        finish(world, unit)
        return False
    there = unit.order.x, unit.order.y
    unit.order = Order(OrderKind.PATROL, *unit.patrol_from, 0)
    unit.patrol_from = there
    world.orders_changed()
    return True


def _begin(world: World, unit: Unit, order: Order) -> None:
    on_errand = unit.order.kind >= _GATHER
    unit.order = order
    if on_errand or order.kind >= _GATHER:
        unit.job = None
        world.sort_walkers()
    unit.patrol_from = unit.x, unit.y
    # An order to attack does not end an attack under way.
    # Units that are ordered to attack in every loop would never hit if orders ended attacks.
    if order.kind != OrderKind.ATTACK or unit.hits_at == NEVER:
        unit.lower_weapon()
    if order.kind == OrderKind.CAST:
        world.casting = True
        world.disturb()  # the game must apply the rule `Spells`
    else:
        world.orders_changed()
