"""Commands of an economy: gather, bring home, build, train, rally, cancel, lower, raise.

Rule it keeps: on a map without an economy each of them gets NotSupported.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2pool.standin.data.abilities import (
    CANCEL_QUEUED,
    CANCEL_SITE,
    HALT,
    KIND_BY_ABILITY,
    SMART,
    OrderKind,
    specific,
)
from sc2pool.standin.data.unit_types import SCV, TYPE_BY_NAME, UNIT_TYPES
from sc2pool.standin.simulation.economy.building import is_geyser
from sc2pool.standin.simulation.economy.economy import Economy
from sc2pool.standin.simulation.economy.jobs import Errand, Factory, Site
from sc2pool.standin.simulation.economy.mining import can_gather
from sc2pool.standin.simulation.game import Game
from sc2pool.standin.simulation.sight import SNAPSHOT_TAG
from sc2pool.standin.simulation.world import NEUTRAL, Order, Unit

_GATHER = OrderKind.GATHER
_OTHER_DEPOT = {
    TYPE_BY_NAME[one]: TYPE_BY_NAME[other]
    for one, other in (
        ("SupplyDepot", "SupplyDepotLowered"),
        ("SupplyDepotLowered", "SupplyDepot"),
    )
}
_TOO_EXPENSIVE = (error_pb.NotEnoughMinerals, error_pb.NotEnoughVespene, error_pb.NotEnoughFood)
MADE_BY = {
    unit.build_ability_id: unit
    for unit in UNIT_TYPES
    if KIND_BY_ABILITY.get(unit.build_ability_id) in (OrderKind.BUILD, OrderKind.TRAIN)
}
"""What an ability builds or trains."""


def find(game: Game, tag: int) -> Unit | None:
    """The unit that a client means: one it sees, or one it remembers."""
    by_tag = game.world.by_tag
    return by_tag.get(tag) or by_tag.get(tag - SNAPSHOT_TAG)


def hidden_units(game: Game, player: int) -> set[Unit]:
    """The opponent's units that a player does not see: it may build where they stand."""
    sight = game.sight_of(player)
    if sight is None:
        return set()
    sight.look()
    others = [unit for unit in game.world.units if unit.owner not in (player, NEUTRAL)]
    return set(others) - set(sight.in_sight)


def read_errand(
    game: Game, unit: Unit, ability_id: int, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType | None:
    """The order of such a command, or why there is none; None for another kind of command."""
    kind = KIND_BY_ABILITY.get(ability_id)
    target = find(game, command.target_unit_tag)
    if kind is None:  # a right click
        kind = _smart(unit, target)
    if kind < _GATHER:
        return None
    economy = game.economies.get(unit.owner)
    if economy is None:
        return error_pb.NotSupported
    if kind == OrderKind.CANCEL:
        return _cancel(unit, ability_id)
    if isinstance(unit.job, Site):
        return error_pb.BuildingIsUnderConstruction
    if kind in (OrderKind.BUILD, OrderKind.TRAIN):
        return _make(game, economy, unit, target, command)
    return _other(game, unit, target, kind, command)


def _other(
    game: Game,
    unit: Unit,
    target: Unit | None,
    kind: OrderKind,
    command: raw_pb.ActionRawUnitCommand,
) -> Order | error_pb.ActionResult.ValueType:
    """The order of a command that makes nothing."""
    if kind == OrderKind.GATHER:
        return _gather(unit, target)
    if kind == OrderKind.RALLY:
        return _rally(game, unit, target, command)
    if kind == OrderKind.RETURN and not any(unit.cargo):
        return error_pb.Error
    return Order(kind, 0.0, 0.0, 0)


def _cancel(unit: Unit, ability_id: int) -> Order | error_pb.ActionResult.ValueType:
    job = unit.job
    if ability_id == HALT and isinstance(job, Errand) and job.constructing:
        return Order(OrderKind.IDLE, 0.0, 0.0, 0)
    trains = ability_id == CANCEL_QUEUED and unit.order.makes is not None
    if trains or (ability_id == CANCEL_SITE and isinstance(job, Site)):
        return Order(OrderKind.CANCEL, 0.0, 0.0, 0)
    return error_pb.CantFindCancelOrder


def can_use(game: Game, unit: Unit, ability_id: int, *, free: bool) -> bool:
    """True if a unit can use one of its abilities now; if it is `free`, at any price."""
    kind = KIND_BY_ABILITY.get(ability_id, OrderKind.MOVE)
    if kind < _GATHER:
        return True
    economy = game.economies.get(unit.owner)
    if economy is None:
        return False
    if kind == OrderKind.CANCEL:
        return isinstance(_cancel(unit, ability_id), Order)
    if isinstance(unit.job, Site) or (kind == OrderKind.RETURN and not any(unit.cargo)):
        return False
    if kind in (OrderKind.BUILD, OrderKind.TRAIN):
        result = economy.allows(MADE_BY[ability_id])
        return result == error_pb.Success or (free and result in _TOO_EXPENSIVE)
    return True


def obey_at_once(game: Game, economy: Economy, unit: Unit, order: Order) -> None:
    """Carry out an order that no unit has: rally, lower and raise, cancel."""
    if order.kind == OrderKind.RALLY:
        _set_rally(unit, order)
    elif order.kind == OrderKind.MORPH:
        game.world.become(unit, _OTHER_DEPOT[unit.type])
    elif isinstance(unit.job, Site):
        economy.refund(*economy.building.cancel(unit))
    else:
        kind = economy.production.cancel_last(unit)
        if kind is not None:
            economy.refund(kind.minerals, kind.vespene)


def _set_rally(unit: Unit, order: Order) -> None:
    """Set where a structure sends its new units."""
    if isinstance(unit.job, Factory):
        kind = OrderKind.GATHER if order.target_tag else OrderKind.MOVE
        unit.job.rally = [order._replace(kind=kind)]


def _smart(unit: Unit, target: Unit | None) -> OrderKind:
    """What a right click means for this unit."""
    if not unit.type.mobile:
        return OrderKind.RALLY
    if unit.type is SCV and target is not None:
        if can_gather(target, unit.owner):
            return OrderKind.GATHER
        if target.owner == unit.owner and isinstance(target.job, Site):
            return OrderKind.BUILD
        if any(unit.cargo) and target.owner == unit.owner and isinstance(target.job, Factory):
            return OrderKind.RETURN
    return OrderKind.MOVE


def _gather(unit: Unit, target: Unit | None) -> Order | error_pb.ActionResult.ValueType:
    if target is None:
        return error_pb.MustTargetVisibleUnit
    if is_geyser(target):
        return error_pb.MustBuildRefineryFirst
    if not can_gather(target, unit.owner):
        return error_pb.CantHarvestThatResource
    return Order(OrderKind.GATHER, 0.0, 0.0, target.tag)


def _rally(
    game: Game, unit: Unit, target: Unit | None, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType:
    if target is not None and can_gather(target, unit.owner):
        return Order(OrderKind.RALLY, 0.0, 0.0, target.tag)
    if target is not None:
        return Order(OrderKind.RALLY, *game.terrain.clamp(target.x, target.y), 0)
    point = command.target_world_space_pos
    if not command.HasField("target_world_space_pos") or not game.terrain.on_map(point.x, point.y):
        return error_pb.MustTargetWalkableLocation
    return Order(OrderKind.RALLY, *game.terrain.clamp(point.x, point.y), 0)


def _make(
    game: Game,
    economy: Economy,
    unit: Unit,
    target: Unit | None,
    command: raw_pb.ActionRawUnitCommand,
) -> Order | error_pb.ActionResult.ValueType:
    """The order to build or train something, or to go on with a site."""
    ability_id = specific(command.ability_id)
    if ability_id == SMART and target is not None:
        return economy.building.resume(target)
    made = MADE_BY[ability_id]
    result = economy.allows(made)
    if result != error_pb.Success:
        return result
    if made.food:
        if not economy.production.has_place(unit):
            return error_pb.QueueIsFull
        return Order(OrderKind.TRAIN, 0.0, 0.0, 0, made)
    if made.has_vespene:
        place = (target.x, target.y) if target is not None and is_geyser(target) else None
    else:
        point = command.target_world_space_pos
        place = economy.building.snap(made, point.x, point.y)
    if place is None:
        return error_pb.CantBuildLocationInvalid
    result = economy.building.can_place(made, *place, hidden=hidden_units(game, unit.owner))
    return result if result != error_pb.Success else Order(OrderKind.BUILD, *place, 0, made)
