"""Actions: turns a client's commands into orders, with the game's result codes.

Every action of a request gets one result. The units that can obey a unit command do; if none can,
the result is the first unit's reason. The next observation's `action_errors` lists each unit that
cannot.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin import abilities, orders
from sc2pool.standin.abilities import KIND_BY_ABILITY, OrderKind
from sc2pool.standin.game import Game
from sc2pool.standin.state import State
from sc2pool.standin.world import ENEMY, ME, Order, Unit

Success = error_pb.Success
_WITHOUT_TARGET = (abilities.STOP, abilities.HOLD)


def action(state: State, request: sc_pb.RequestAction, response: sc_pb.Response) -> None:
    """Give all the orders; they take effect with the next loop."""
    if state.created().scenario.stamp:
        state.provenance.note_action(request.SerializeToString(deterministic=True))
    response.action.SetInParent()
    response.action.result.extend([_perform(state, one) for one in request.actions])


def _perform(state: State, one: sc_pb.Action) -> error_pb.ActionResult.ValueType:
    if one.HasField("action_raw"):
        raw = one.action_raw
        if raw.HasField("unit_command"):
            return _command(state, raw.unit_command)
        # Camera moves and autocast toggles have no effect on these maps.
        return Success if raw.WhichOneof("action") is not None else error_pb.Error
    if one.HasField("action_chat"):
        return Success
    # Feature layers, rendered screens and the user interface are not simulated.
    return error_pb.NotSupported


def _command(state: State, command: raw_pb.ActionRawUnitCommand) -> error_pb.ActionResult.ValueType:
    game = state.playing()
    tags = dict.fromkeys(command.unit_tags)
    failed = []
    for tag in tags:
        result = _command_unit(game, tag, command)
        if result != Success:
            failed.append(result)
            # The id is signed in a command and unsigned in an error.
            error = sc_pb.ActionError(
                unit_tag=tag, ability_id=max(0, command.ability_id), result=result
            )
            state.action_errors.append(error)
    if len(failed) < len(tags):
        return Success
    return failed[0] if failed else error_pb.Error


def _command_unit(
    game: Game, tag: int, command: raw_pb.ActionRawUnitCommand
) -> error_pb.ActionResult.ValueType:
    """Give one unit the order; returns the result code."""
    unit = game.world.by_tag.get(tag)
    if unit is None:
        return error_pb.Error
    if unit.owner != ME:
        return error_pb.YouCantIssueCommandsToThatUnit
    ability_id = abilities.specific(command.ability_id)
    if ability_id not in abilities.available_to(unit.type):
        return error_pb.NotSupported
    order = _read_order(game, unit, ability_id, command)
    if not isinstance(order, Order):
        return order
    # A stop is never queued.
    queued = command.queue_command and order.kind != OrderKind.IDLE
    accepted = orders.give(game.world, unit, order, queued=queued)
    return Success if accepted else error_pb.OrderQueueIsFull


def _read_order(
    game: Game, unit: Unit, ability_id: int, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType:
    target = command.WhichOneof("target")
    if ability_id in _WITHOUT_TARGET:
        return Order(KIND_BY_ABILITY[ability_id], 0.0, 0.0, 0)
    if target == "target_unit_tag":
        return _order_on_unit(game, unit, ability_id, command.target_unit_tag)
    if target == "target_world_space_pos":
        point = command.target_world_space_pos
        if not game.terrain.on_map(point.x, point.y):
            return error_pb.MustTargetWalkableLocation
        kind = OrderKind.MOVE if ability_id == abilities.SMART else KIND_BY_ABILITY[ability_id]
        return Order(kind, *game.terrain.clamp(point.x, point.y), 0)
    return error_pb.MustTargetUnit


def _order_on_unit(
    game: Game, unit: Unit, ability_id: int, target_tag: int
) -> Order | error_pb.ActionResult.ValueType:
    target = game.world.by_tag.get(target_tag)
    if target is None:
        return error_pb.MustTargetVisibleUnit
    if target is unit:
        return error_pb.CantTargetThatUnit
    scenery = target.type.invulnerable
    hostile = target.owner == ENEMY and not scenery
    armed = unit.type.weapon is not None
    if ability_id == abilities.ATTACK and not hostile:
        if scenery:
            return error_pb.CantTargetInvulnerableUnits
        return error_pb.CantTargetFriendlyUnits
    kind = KIND_BY_ABILITY.get(ability_id, OrderKind.MOVE)
    if ability_id == abilities.SMART and hostile and armed:
        kind = OrderKind.ATTACK
    if scenery or kind == OrderKind.PATROL:
        # Scenery blocks no unit: walking to it means walking to its position.
        return Order(kind, *game.terrain.clamp(target.x, target.y), 0)
    return Order(kind, 0.0, 0.0, target_tag)
