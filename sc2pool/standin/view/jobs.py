"""What the units of an economy show: progress, harvesters, contents, cargo."""

from __future__ import annotations

from s2clientprotocol import raw_pb2 as raw_pb

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.economy import CARRIES_MINERALS, CARRIES_VESPENE
from sc2pool.standin.data.unit_types import COMMAND_CENTER
from sc2pool.standin.simulation.economy.jobs import Deposit, Factory, Job, Site
from sc2pool.standin.simulation.terrain import GROUND_Z
from sc2pool.standin.simulation.world import Order, Unit, World, way_to

FIELD_CELLS = 14.0
"""How far from a town hall its mineral fields lie at most, in cells."""
HARVESTERS_A_FIELD, HARVESTERS_A_REFINERY = 2, 3
"""Ideal number of harvesters."""


def show_job(message: raw_pb.Unit, unit: Unit, job: Job, world: World) -> None:
    """Set the fields of one of the client's units that has a job."""
    if isinstance(job, Site):
        show_progress(message, unit, job)
    elif isinstance(job, Factory):
        show_progress(message, unit, job)
        _show_factory(message, unit, job, world)
    elif isinstance(job, Deposit):
        message.build_progress = 1.0
        message.assigned_harvesters = _assigned(world, {unit.tag})
        message.ideal_harvesters = HARVESTERS_A_REFINERY
        show_contents(message, unit, job)


def show_cargo(message: raw_pb.Unit, unit: Unit) -> None:
    """Set what a worker carries, on an errand or not."""
    minerals, vespene = unit.cargo
    message.buff_ids[:] = [CARRIES_MINERALS] * (minerals > 0) + [CARRIES_VESPENE] * (vespene > 0)


def show_progress(message: raw_pb.Unit, unit: Unit, job: Site | Factory) -> None:
    """Set how far a structure is built, and its type: a supply depot can be lowered."""
    left = job.left / unit.type.build_time_loops if isinstance(job, Site) else 0.0
    message.build_progress = min(max(1.0 - left, 0.0), 1.0)
    message.unit_type = unit.type.id


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
    if unit.type is COMMAND_CENTER:
        fields = _fields_of(unit, world)
        message.assigned_harvesters = _assigned(world, fields)
        message.ideal_harvesters = HARVESTERS_A_FIELD * len(fields)
    del message.rally_targets[:]
    for order in job.rally:
        _show_rally(message, order, world)


def _fields_of(hall: Unit, world: World) -> set[int]:
    """The mineral fields that are mined from a town hall: it is the nearest one."""
    others = [
        one
        for one in world.structures[hall.owner]
        if one.type is COMMAND_CENTER and one is not hall
    ]
    found = set()
    for one in world.units:
        if one.type.has_minerals:
            distance = way_to(one, hall.x, hall.y)[2]
            if distance < FIELD_CELLS and all(
                way_to(one, other.x, other.y)[2] >= distance for other in others
            ):
                found.add(one.tag)
    return found


def _show_rally(message: raw_pb.Unit, order: Order, world: World) -> None:
    target = world.by_tag.get(order.target_tag)
    x, y = (order.x, order.y) if target is None else (target.x, target.y)
    shown = message.rally_targets.add(tag=order.target_tag)
    shown.point.x, shown.point.y, shown.point.z = x, y, GROUND_Z


def _assigned(world: World, deposits: set[int]) -> int:
    """Number of workers that gather from one of these deposits."""
    return sum(worker.workplace in deposits for worker in world.workers)
