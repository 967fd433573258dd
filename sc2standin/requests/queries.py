"""Queries: walking distance, placement of buildings, abilities of a unit."""

from __future__ import annotations

import math

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import query_pb2 as query_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data import abilities
from sc2standin.data.abilities import OrderKind, available_to
from sc2standin.data.unit_types.files import BARE_ADD_ONS, UNIT_TYPES
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.process.state import State
from sc2standin.requests.commands.errands import known_to
from sc2standin.simulation.economy.offers import MADE_BY, can_use
from sc2standin.simulation.economy.structures import add_on_place
from sc2standin.simulation.economy.workers.building import ALL_KNOWN, Known
from sc2standin.simulation.game import Game

_LIFTED = [kind for kind in UNIT_TYPES if kind.afloat]


def query(state: State, request: query_pb.RequestQuery, response: sc_pb.Response) -> None:
    """Answer every part of the query, in order."""
    game = state.playing()
    reply = response.query
    reply.SetInParent()
    for path in request.pathing:
        reply.pathing.add(distance=_walking_distance(game, path))
    for one in request.abilities:
        free = request.ignore_resource_requirements
        _fill_abilities(reply.abilities.add(unit_tag=one.unit_tag), state, free=free)
    known = known_to(game, state.player_id) if request.placements else ALL_KNOWN
    for place in request.placements:
        reply.placements.add(result=_placement(game, place, state.player_id, known))


def _walking_distance(game: Game, path: query_pb.RequestQueryPathing) -> float:
    """The length of the path, or 0 without a path. A game without `routes` has straight paths."""
    if path.HasField("start_pos"):
        start_x, start_y = path.start_pos.x, path.start_pos.y
    else:
        unit = game.world.by_tag.get(path.unit_tag)
        if unit is None:
            return 0.0
        start_x, start_y = unit.x, unit.y
    end_x, end_y = path.end_pos.x, path.end_pos.y
    if not (game.terrain.walkable(start_x, start_y) and game.terrain.walkable(end_x, end_y)):
        return 0.0
    if game.routes is not None:
        game.routes.update()
        length = game.routes.length((start_x, start_y), (end_x, end_y))
        return length if math.isfinite(length) else 0.0
    return math.hypot(end_x - start_x, end_y - start_y)


def _fill_abilities(
    reply: query_pb.ResponseQueryAvailableAbilities, state: State, *, free: bool
) -> None:
    """List the abilities that a unit can use now; if `free`, the abilities' costs do not count."""
    game = state.playing()
    unit = game.world.by_tag.get(reply.unit_tag)
    if unit is None:
        return
    reply.unit_type_id = unit.type.id
    if unit.owner != state.player_id:
        return
    economy = game.economies.get(unit.owner)
    for ability_id in available_to(unit.type):
        if can_use(economy, unit, ability_id, game.world.loop, free=free):
            point = abilities.needs_target(ability_id)
            reply.abilities.add(ability_id=ability_id, requires_point=point)


def _placed(ability_id: int) -> UnitType | None:
    """The structure that an ability puts on the ground, or None."""
    kind = abilities.KIND_BY_ABILITY.get(ability_id)
    if kind == OrderKind.LAND:
        return next(one.made_from for one in _LIFTED if ability_id in available_to(one))
    return MADE_BY[ability_id] if kind in (OrderKind.BUILD, OrderKind.ADD_ON) else None


def _placement(
    game: Game, place: query_pb.RequestQueryBuildingPlacement, player: int, known: Known
) -> error_pb.ActionResult.ValueType:
    """Success if the place suits the ability's structure or, without a structure, is free."""
    x, y = place.target_pos.x, place.target_pos.y
    made = _placed(abilities.specific(place.ability_id))
    economy = game.economies.get(player, game.economy)
    if economy is not None and made is not None:
        if made in BARE_ADD_ONS:
            x, y = add_on_place(x, y)
        middle = economy.building.snap(made, x, y)
        if middle is None:
            return error_pb.CantBuildLocationInvalid
        return economy.building.can_place(made, *middle, known)
    if not game.terrain.walkable(x, y):
        return error_pb.CantBuildLocationInvalid
    for unit in game.world.units:
        dx, dy, radius = unit.x - x, unit.y - y, unit.type.radius
        if not unit.type.invulnerable and dx * dx + dy * dy < radius * radius:
            return error_pb.CantBuildOnThat
    return error_pb.Success
