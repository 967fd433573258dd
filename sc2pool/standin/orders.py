"""Orders of single units: give, queue and finish them.

The current order is columns of the world (kind, point, target); queued orders are a short list per
tag. Every change makes `movement` plan again.
"""

from __future__ import annotations

import numpy as np

from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.world import Order, World

QUEUE_LIMIT = 32
"""Maximum number of queued orders behind the current one, as in the real game."""

STOPPED = Order(OrderKind.IDLE, 0.0, 0.0, 0)


def give(world: World, row: int, order: Order, *, queued: bool) -> bool:
    """Give a unit an order, now or after its queued orders; False if its queue is full."""
    tag = int(world.tag[row])
    if queued and world.order[row] != OrderKind.IDLE:
        waiting = world.queued.setdefault(tag, [])
        if len(waiting) >= QUEUE_LIMIT:
            return False
        waiting.append(order)
        world.orders_changed()
        return True
    if world.queued.pop(tag, None) is None and _is_doing(world, row, order):
        return True
    _begin(world, row, order)
    return True


def _is_doing(world: World, row: int, order: Order) -> bool:
    """True if the unit has this order already; giving it again changes nothing."""
    return (
        int(world.order[row]) == order.kind != OrderKind.PATROL
        and int(world.order_tag[row]) == order.target_tag
        and tuple(world.order_point[row].tolist()) == (order.x, order.y)
    )


def finish(world: World, row: int) -> None:
    """End a unit's order and begin its next one."""
    tag = int(world.tag[row])
    waiting = world.queued.get(tag)
    if not waiting:
        _begin(world, row, STOPPED)
        return
    order = waiting.pop(0)
    if not waiting:
        del world.queued[tag]
    _begin(world, row, order)


def reach_point(world: World, row: int) -> bool:
    """A unit has reached its point: end its order, or turn its patrol back; True if it turned."""
    if world.order[row] != OrderKind.PATROL or world.queued.get(int(world.tag[row])):
        finish(world, row)
        return False
    there = world.order_point[row].copy()
    world.order_point[row] = world.patrol_from[row]
    world.patrol_from[row] = there
    world.orders_changed()
    return True


def forget_all(world: World) -> None:
    """Stop all units, as after the start of a new wave."""
    world.queued.clear()
    for column in (world.order, world.order_tag, world.engaged):
        column[:] = 0
    world.disturb()


def drop_lost_targets(world: World) -> None:
    """End the orders whose target is gone."""
    for row in np.flatnonzero(world.order_tag).tolist():
        # The next order in the queue may name a dead unit, too.
        while world.order_tag[row] and world.row_of(int(world.order_tag[row])) < 0:
            finish(world, row)


def _begin(world: World, row: int, order: Order) -> None:
    world.order[row] = order.kind
    world.order_point[row] = (order.x, order.y)
    world.order_tag[row] = order.target_tag
    world.patrol_from[row] = world.pos[row]
    world.engaged[row] = 0
    world.orders_changed()
