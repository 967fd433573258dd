"""Commands of an economy: gather, repair, build, make, land, call down, rally, cancel, salvage.

On a map without an economy, each of these commands is refused with NotSupported. A player may
choose a building place on which a unit stands, as long as the player does not see that unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.abilities import KIND_BY_ABILITY, SMART, OrderKind, specific
from sc2standin.data.unit_types.files import MULE, SCV, TYPE_BY_NAME, WORKERS
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.economy.offers import MADE_BY, made_by, meant, refusal
from sc2standin.simulation.economy.structures import QUEUED, add_on_place
from sc2standin.simulation.economy.workers.building import Known, can_repair, is_geyser
from sc2standin.simulation.economy.workers.mining import can_gather
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.sight import SNAPSHOT_TAG
from sc2standin.simulation.units import NEUTRAL, Errand, Factory, Order, Site, Unit

Answer: TypeAlias = Order | error_pb.ActionResult.ValueType
"""The order that a command gives, or the reason for a refusal."""
_LANDING_ERRORS = {
    error_pb.CantBuildLocationInvalid: error_pb.CantLandLocationInvalid,
    error_pb.CantBuildTooCloseToResources: error_pb.CantLandTooCloseToResources,
    error_pb.CantBuildTooCloseToCreepSource: error_pb.CantLandTooCloseToCreepSource,
}
"""For each error of building at a place, the error of landing there."""


class Asked(NamedTuple):
    """A command to one unit; the unit's player can pay for the command."""

    game: Game
    economy: Economy
    unit: Unit
    target: Unit | None
    kind: OrderKind
    command: raw_pb.ActionRawUnitCommand


def known_to(game: Game, player: int) -> Known:
    """What a player knows when it chooses a place to build; it does not see `hidden` units."""
    others = [unit for unit in game.world.units if unit.owner not in (player, NEUTRAL)]
    hidden = {unit for unit in others if is_hidden(unit, player)}
    sight = game.sight_of(player)
    if sight is None:
        return Known(hidden)
    sight.scan()
    return Known(hidden | (set(others) - set(sight.in_sight)), sight.lit)


def build(asked: Asked) -> Answer:
    """The order to build a structure, or to continue its construction."""
    unit, target, building = asked.unit, asked.target, asked.economy.building
    ability_id = specific(asked.command.ability_id, unit.type)
    if ability_id == SMART and target is not None:
        return building.resume(target)
    made = MADE_BY[ability_id]
    if made.has_vespene:
        place = (target.x, target.y) if target is not None and is_geyser(target) else None
    else:
        point = asked.command.target_world_space_pos
        place = building.snap(made, point.x, point.y)
    if place is None:
        return error_pb.CantBuildLocationInvalid
    result = building.can_place(made, *place, known_to(asked.game, unit.owner))
    return result if result != error_pb.Success else Order(OrderKind.BUILD, *place, 0, made)


def make(asked: Asked) -> Answer:
    """The order to a structure to make something, to do research, or to change its type."""
    unit, economy = asked.unit, asked.economy
    made = made_by(meant(asked.command.ability_id, unit, economy))
    if asked.kind in QUEUED and not economy.production.has_place(unit):
        return error_pb.QueueIsFull
    if asked.kind == OrderKind.ADD_ON and isinstance(made, UnitType):
        point = asked.command.target_world_space_pos
        here = economy.building.snap(unit.type, point.x, point.y) == (unit.x, unit.y)
        if asked.command.HasField("target_world_space_pos") and not here:
            return error_pb.AddOnTooFarFromBuilding
        known = known_to(asked.game, unit.owner)
        result = economy.building.can_place(made, *add_on_place(unit.x, unit.y), known)
        if result != error_pb.Success:
            return result
    return Order(asked.kind, 0.0, 0.0, 0, made)


def land(asked: Asked) -> Answer:
    """The order to land; its point is the centre of the cells on which the structure lands."""
    building, kind = asked.economy.building, asked.unit.type.made_from
    point = asked.command.target_world_space_pos
    if kind is None or not asked.command.HasField("target_world_space_pos"):
        return error_pb.CantLandLocationInvalid
    place = building.snap(kind, point.x, point.y)
    if place is None:
        return error_pb.CantLandLocationInvalid
    result = building.can_place(kind, *place, known_to(asked.game, asked.unit.owner))
    return (
        Order(OrderKind.LAND, *place, 0) if result == error_pb.Success else _LANDING_ERRORS[result]
    )


_OTHER_DEPOT = {
    TYPE_BY_NAME[one]: TYPE_BY_NAME[other]
    for one, other in (
        ("SupplyDepot", "SupplyDepotLowered"),
        ("SupplyDepotLowered", "SupplyDepot"),
    )
}


def find(game: Game, tag: int, player: int) -> Unit | None:
    """The unit that a player means by a tag, if the player sees or remembers the unit."""
    by_tag, sight = game.world.by_tag, game.sight_of(player)
    unit = by_tag.get(tag) or by_tag.get(tag - SNAPSHOT_TAG)
    return unit if unit is None or sight is None or sight.knows(unit) else None


def read_errand(
    game: Game, unit: Unit, ability_id: int, command: raw_pb.ActionRawUnitCommand
) -> Answer | None:
    """The order to a unit, or the reason for a refusal; None if another file reads the command."""
    kind = KIND_BY_ABILITY.get(ability_id)
    target = find(game, command.target_unit_tag, unit.owner)
    if kind is None:  # the command is a right click
        kind = _smart(unit, target)
    economy = game.economies.get(unit.owner)
    if kind < OrderKind.LAND and not (unit.type.afloat and economy is None):
        return None
    if economy is None:
        return error_pb.NotSupported
    if ability_id != SMART:
        result = refusal(economy, unit, ability_id)
    else:
        is_site = isinstance(unit.job, Site)
        result = error_pb.BuildingIsUnderConstruction if is_site else error_pb.Success
    if result != error_pb.Success:
        return result
    asked = Asked(game, economy, unit, target, kind, command)
    return _READERS[kind](asked) if kind in _READERS else Order(kind, 0.0, 0.0, 0)


def obey_at_once(
    game: Game, economy: Economy, unit: Unit, order: Order
) -> error_pb.ActionResult.ValueType:
    """Carry out an order that takes no time, such as a rally, a scan or a cancellation."""
    if order.kind == OrderKind.RALLY:
        _set_rally(unit, order)
    elif order.kind == OrderKind.MORPH:
        if unit.type not in _OTHER_DEPOT:
            return economy.morphs.begin(unit)
        game.world.become(unit, _OTHER_DEPOT[unit.type])
    elif order.kind in (OrderKind.CALL_MULE, OrderKind.SCAN):
        if not economy.orbital.cast(unit, order):
            return error_pb.NotEnoughEnergy
    elif order.kind == OrderKind.STIM:
        if not economy.stimpacks.use(unit):
            return error_pb.NotEnoughLife
    elif order.kind == OrderKind.HALT:
        economy.building.halt(unit)
    elif order.kind == OrderKind.SALVAGE:
        if economy.building.salvages(unit):  # an earlier order of this loop began the salvage
            return error_pb.CantQueueThatOrder
        economy.building.salvage(unit)
    elif isinstance(unit.job, Site):
        economy.cancel_site(unit)
    else:
        economy.cancel(unit, len(unit.queue))
    return error_pb.Success


def _set_rally(unit: Unit, order: Order) -> None:
    """Set the point or the resource to which a structure is to send its new units."""
    if isinstance(unit.job, Factory):
        kind = OrderKind.GATHER if order.target_tag else OrderKind.MOVE
        unit.job.rally = [order._replace(kind=kind)]


def _smart(unit: Unit, target: Unit | None) -> OrderKind:
    """The kind of the order that a right click on this target gives a unit."""
    if not unit.type.mobile:
        return OrderKind.MOVE if unit.type.afloat else OrderKind.RALLY
    if unit.type in WORKERS and target is not None:
        if can_gather(target, unit.owner):
            return OrderKind.GATHER
        if unit.type is SCV and target.owner == unit.owner and isinstance(target.job, Site):
            return OrderKind.BUILD
        if any(unit.cargo) and target.owner == unit.owner and isinstance(target.job, Factory):
            return OrderKind.RETURN
        if can_repair(unit, target):
            return OrderKind.REPAIR
    return OrderKind.MOVE


def _gather(asked: Asked) -> Answer:
    target = asked.target
    if target is None:
        return error_pb.MustTargetVisibleUnit
    if is_geyser(target):
        return error_pb.MustBuildRefineryFirst
    no_gas = asked.unit.type is MULE and not target.type.has_minerals
    if no_gas or not can_gather(target, asked.unit.owner):
        return error_pb.CantHarvestThatResource
    return Order(OrderKind.GATHER, 0.0, 0.0, target.tag)


def _repair(asked: Asked) -> Answer:
    target = asked.target
    if target is None:
        return error_pb.MustTargetVisibleUnit
    if not can_repair(asked.unit, target):
        return error_pb.RequiresRepairTarget
    return Order(OrderKind.REPAIR, 0.0, 0.0, target.tag)


def _cancel(asked: Asked) -> Answer:
    """The order to a structure to cancel its work, or to a worker to stop building."""
    stops = isinstance(asked.unit.job, Errand)
    return Order(OrderKind.IDLE if stops else OrderKind.CANCEL, 0.0, 0.0, 0)


def _rally(asked: Asked) -> Answer:
    target, terrain, command = asked.target, asked.game.terrain, asked.command
    if target is not None and can_gather(target, asked.unit.owner):
        return Order(OrderKind.RALLY, 0.0, 0.0, target.tag)
    if target is not None:
        return Order(OrderKind.RALLY, *terrain.clamp(target.x, target.y), 0)
    point = command.target_world_space_pos
    if not command.HasField("target_world_space_pos") or not terrain.on_map(point.x, point.y):
        return error_pb.MustTargetWalkableLocation
    return Order(OrderKind.RALLY, *terrain.clamp(point.x, point.y), 0)


def _cast(asked: Asked) -> Answer:
    """The order to scan any place on the map, or to call a MULE down to a place in sight."""
    target, command = asked.target, asked.command
    if target is None and not command.HasField("target_world_space_pos"):
        return error_pb.MustTargetVisibleUnit
    point = command.target_world_space_pos
    x, y = (point.x, point.y) if target is None else (target.x, target.y)
    if not asked.game.terrain.on_map(x, y):
        return error_pb.MustTargetVisibleLocation
    if asked.kind == OrderKind.SCAN:
        return Order(OrderKind.SCAN, x, y, 0)
    sight = asked.game.sight_of(asked.unit.owner)
    if sight is not None and not sight.sees(x, y):
        return error_pb.MustTargetVisibleLocation
    field_tag = target.tag if target is not None and target.type.has_minerals else 0
    return Order(OrderKind.CALL_MULE, x, y, field_tag)


_READERS: dict[OrderKind, Callable[[Asked], Answer]] = {
    OrderKind.GATHER: _gather,
    OrderKind.REPAIR: _repair,
    OrderKind.RALLY: _rally,
    OrderKind.CALL_MULE: _cast,
    OrderKind.SCAN: _cast,
    OrderKind.CANCEL: _cancel,
    OrderKind.BUILD: build,
    OrderKind.LAND: land,
    OrderKind.TRAIN: make,
    OrderKind.UPGRADE: make,
    OrderKind.ADD_ON: make,
    OrderKind.LIFT: make,
    OrderKind.RESEARCH: make,
}
"""The functions that read commands with a target or a product; other commands need no function."""
