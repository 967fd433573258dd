"""What the units of an economy show: progress, harvesters, contents, cargo."""

from __future__ import annotations

from s2clientprotocol import raw_pb2 as raw_pb

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.simulation.economy.jobs import Deposit, Factory, Job, Site
from sc2pool.standin.simulation.terrain import GROUND_Z
from sc2pool.standin.simulation.world import Order, Unit, World

CARRIES_MINERALS, CARRIES_VESPENE = 271, 273
"""Ids of the buffs of a worker with cargo."""
HARVESTERS_A_FIELD, HARVESTERS_A_REFINERY = 2, 3
"""Ideal number of harvesters."""


def show_job(message: raw_pb.Unit, unit: Unit, job: Job, world: World) -> None:
    """Set the fields of one of the client's units that has a job."""
    if isinstance(job, Site):
        left = (job.done_at - world.loop) / unit.type.build_time_loops
        message.build_progress = min(max(1.0 - left, 0.0), 1.0)
        return
    if isinstance(job, Factory):
        message.build_progress = 1.0
        _show_factory(message, unit, job, world)
    elif isinstance(job, Deposit):
        message.build_progress = 1.0
        message.assigned_harvesters = _assigned(world, {unit.tag})
        message.ideal_harvesters = HARVESTERS_A_REFINERY
        show_contents(message, unit, job)
    else:
        minerals, vespene = unit.cargo
        carried = [CARRIES_MINERALS] * (minerals > 0) + [CARRIES_VESPENE] * (vespene > 0)
        if list(message.buff_ids) != carried:
            message.buff_ids[:] = carried


def show_contents(message: raw_pb.Unit, unit: Unit, job: Deposit) -> None:
    """Set what is left in a mineral field, a geyser or a refinery."""
    if unit.type.has_minerals:
        message.mineral_contents = job.left
    else:
        message.vespene_contents = job.left


def _show_factory(message: raw_pb.Unit, unit: Unit, job: Factory, world: World) -> None:
    message.is_active = unit.order.kind == OrderKind.TRAIN
    made = unit.order.makes
    if made is not None and message.orders:
        left = job.done_at - world.loop if job.done_at else made.build_time_loops
        message.orders[0].progress = 1.0 - left / made.build_time_loops
    if unit.type.food_provided:
        fields = {one.tag for one in world.units if one.type.has_minerals}
        message.assigned_harvesters = _assigned(world, fields)
        message.ideal_harvesters = HARVESTERS_A_FIELD * len(fields)
    del message.rally_targets[:]
    for order in job.rally:
        _show_rally(message, order, world)


def _show_rally(message: raw_pb.Unit, order: Order, world: World) -> None:
    target = world.by_tag.get(order.target_tag)
    x, y = (order.x, order.y) if target is None else (target.x, target.y)
    shown = message.rally_targets.add(tag=order.target_tag)
    shown.point.x, shown.point.y, shown.point.z = x, y, GROUND_Z


def _assigned(world: World, deposits: set[int]) -> int:
    """Number of workers that gather from one of these deposits."""
    return sum(worker.workplace in deposits for worker in world.workers)
