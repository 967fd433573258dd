"""Commands that make something or need a place: build, train, upgrade, lift, land.

Rule it keeps: a player may choose a place that is taken by a unit that it does not see.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.abilities import SMART, OrderKind, specific
from sc2standin.data.unit_types import UnitType
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.economy.offers import MADE_BY, made_by, meant
from sc2standin.simulation.economy.structures import QUEUED, add_on_place
from sc2standin.simulation.economy.workers.building import Known, is_geyser
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import NEUTRAL, Order, Unit

Answer: TypeAlias = Order | error_pb.ActionResult.ValueType
"""The order that a command gives, or the reason for a refusal."""
_LANDING_ERRORS = {
    error_pb.CantBuildLocationInvalid: error_pb.CantLandLocationInvalid,
    error_pb.CantBuildTooCloseToResources: error_pb.CantLandTooCloseToResources,
    error_pb.CantBuildTooCloseToCreepSource: error_pb.CantLandTooCloseToCreepSource,
}
"""The error of a landing, by the error of building at the same place."""


class Asked(NamedTuple):
    """A command to one unit that its player can pay for."""

    game: Game
    economy: Economy
    unit: Unit
    target: Unit | None
    kind: OrderKind
    command: raw_pb.ActionRawUnitCommand


def known_to(game: Game, player: int) -> Known:
    """A player's knowledge of places; units that it does not see or detect are left out."""
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
    """The order for a product that a structure makes by itself."""
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
    """The order to land; its point is the middle of the structure's future cells."""
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
