"""Economy fields of observed units: progress, harvesters, contents, cargo."""

from __future__ import annotations

from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.unit_types import SCV, TOWN_HALLS
from sc2standin.simulation.terrain import GROUND_Z
from sc2standin.simulation.units import Deposit, Factory, Job, Order, Site, Unit, way_to
from sc2standin.simulation.world import World

FIELD_CELLS = 14.0
"""How far from a town hall its mineral fields lie at most, in cells."""
HARVESTERS_A_FIELD, HARVESTERS_A_REFINERY = 2, 3
"""Ideal number of harvesters."""


def show_job(message: raw_pb.Unit, unit: Unit, job: Job | None, world: World) -> None:
    """Set the fields of one of the client's units that has a job, or is there for a while."""
    if unit.term is not None:
        message.buff_duration_remain = unit.term.until - world.loop
        message.buff_duration_max = unit.term.loops
    if isinstance(job, Site):
        show_progress(message, job)
    elif isinstance(job, Factory):
        show_progress(message, job)
        _show_factory(message, unit, job, world)
    elif isinstance(job, Deposit):
        message.build_progress = 1.0
        message.assigned_harvesters = _assigned(world, {unit.tag})
        message.ideal_harvesters = HARVESTERS_A_REFINERY
        show_contents(message, unit, job)


def show_progress(message: raw_pb.Unit, job: Site | Factory) -> None:
    """Set how far a structure is built."""
    left = job.left / job.loops if isinstance(job, Site) and job.loops else 0.0
    message.build_progress = min(max(1.0 - left, 0.0), 1.0)


def show_contents(message: raw_pb.Unit, unit: Unit, job: Deposit) -> None:
    """Set what is left in a mineral field, a geyser or a refinery."""
    if unit.type.has_minerals:
        message.mineral_contents = job.left
    else:
        message.vespene_contents = job.left


def _show_factory(message: raw_pb.Unit, unit: Unit, job: Factory, world: World) -> None:
    made = (unit.order.makes, *(order.makes for order in unit.queue))
    message.is_active = made[0] is not None
    for place, (shown, kind) in enumerate(zip(message.orders, made, strict=False)):
        begun = place < len(job.done_at)
        if kind is not None:
            left = job.done_at[place] - world.loop if begun else kind.build_time_loops
            shown.progress = 1.0 - left / kind.build_time_loops
    if job.add_on:
        message.add_on_tag = job.add_on
    else:
        message.ClearField("add_on_tag")
    if unit.type in TOWN_HALLS:
        fields = _fields_of(unit, world)
        message.assigned_harvesters = _assigned(world, fields)
        message.ideal_harvesters = HARVESTERS_A_FIELD * len(fields)
    del message.rally_targets[:]
    for order in job.rally:
        _show_rally(message, order, world)


def _fields_of(hall: Unit, world: World) -> set[int]:
    """The mineral fields that are mined from a town hall: it is the nearest one."""
    others = [
        one for one in world.structures[hall.owner] if one.type in TOWN_HALLS and one is not hall
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
    """Number of SCVs that gather from one of these deposits."""
    return sum(one.workplace in deposits for one in world.workers if one.type is SCV)
