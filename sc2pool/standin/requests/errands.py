"""Commands of an economy: gather, bring home, build, train, rally.

Rule it keeps: on a map without an economy each of them gets NotSupported.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2pool.standin.data.abilities import KIND_BY_ABILITY, OrderKind
from sc2pool.standin.data.unit_types import UNIT_TYPES, UnitType
from sc2pool.standin.simulation.economy.building import is_geyser
from sc2pool.standin.simulation.economy.economy import Economy
from sc2pool.standin.simulation.economy.jobs import Factory
from sc2pool.standin.simulation.economy.mining import can_gather
from sc2pool.standin.simulation.game import Game
from sc2pool.standin.simulation.world import ME, Order, Unit

_GATHER = OrderKind.GATHER
MADE_BY = {
    unit.build_ability_id: unit
    for unit in UNIT_TYPES
    if KIND_BY_ABILITY.get(unit.build_ability_id) in (OrderKind.BUILD, OrderKind.TRAIN)
}
"""What an ability builds or trains."""


def read_errand(
    game: Game, unit: Unit, ability_id: int, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType | None:
    """The order of such a command, or why there is none; None for another kind of command."""
    kind = KIND_BY_ABILITY.get(ability_id)
    if kind is not None and kind < _GATHER:
        return None
    target = game.world.by_tag.get(command.target_unit_tag)
    if kind is None:  # a right click
        kind = _smart(unit, target)
    if kind < _GATHER:
        return None
    economy = game.economy
    if economy is None or not (unit.type.mobile or isinstance(unit.job, Factory)):
        return error_pb.NotSupported if economy is None else error_pb.BuildingIsUnderConstruction
    result: Order | error_pb.ActionResult.ValueType
    if kind == OrderKind.GATHER:
        result = _gather(target)
    elif kind == OrderKind.RETURN:
        result = Order(kind, 0.0, 0.0, 0)
        if not any(unit.cargo):
            result = error_pb.Error
    elif kind == OrderKind.RALLY:
        result = _rally(game, target, command)
    else:
        result = _make(economy, unit, target, MADE_BY[ability_id], command)
    return result


def rally(unit: Unit, order: Order) -> None:
    """Set where a structure sends its new units."""
    if isinstance(unit.job, Factory):
        kind = OrderKind.GATHER if order.target_tag else OrderKind.MOVE
        unit.job.rally = [order._replace(kind=kind)]


def _smart(unit: Unit, target: Unit | None) -> OrderKind:
    """What a right click means for this unit."""
    if not unit.type.mobile:
        return OrderKind.RALLY
    if unit.type.name == "SCV" and target is not None:
        if can_gather(target):
            return OrderKind.GATHER
        if any(unit.cargo) and target.owner == ME and isinstance(target.job, Factory):
            return OrderKind.RETURN
    return OrderKind.MOVE


def _gather(target: Unit | None) -> Order | error_pb.ActionResult.ValueType:
    if target is None:
        return error_pb.MustTargetVisibleUnit
    if is_geyser(target):
        return error_pb.MustBuildRefineryFirst
    if not can_gather(target):
        return error_pb.CantHarvestThatResource
    return Order(OrderKind.GATHER, 0.0, 0.0, target.tag)


def _rally(
    game: Game, target: Unit | None, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType:
    if target is not None and can_gather(target):
        return Order(OrderKind.RALLY, 0.0, 0.0, target.tag)
    if target is not None:
        return Order(OrderKind.RALLY, *game.terrain.clamp(target.x, target.y), 0)
    point = command.target_world_space_pos
    if not command.HasField("target_world_space_pos") or not game.terrain.on_map(point.x, point.y):
        return error_pb.MustTargetWalkableLocation
    return Order(OrderKind.RALLY, *game.terrain.clamp(point.x, point.y), 0)


def _make(
    economy: Economy,
    unit: Unit,
    target: Unit | None,
    made: UnitType,
    command: raw_pb.ActionRawUnitCommand,
) -> Order | error_pb.ActionResult.ValueType:
    """The order to build or train something."""
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
    result = economy.building.can_place(made, *place)
    return result if result != error_pb.Success else Order(OrderKind.BUILD, *place, 0, made)
