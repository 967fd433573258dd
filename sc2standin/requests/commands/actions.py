"""Turns a client's actions into orders for units, and returns the game's result codes.

The reply to an action request has one result for each action. Units that can obey a unit command
obey it from the next loop on. If no unit can obey, the command's result is the first unit's error.
The next observation lists the actions that were carried out (`actions` and `chat`), and each unit
that could not obey (`action_errors`).

A command to cast a spell becomes an order, or an error if the unit cannot cast the spell.
"""

from __future__ import annotations

import math
from functools import partial

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data import abilities
from sc2standin.data.abilities import KIND_BY_ABILITY, OrderKind, takes
from sc2standin.data.spells import SPELL_BY_ABILITY, Aim, Spell
from sc2standin.process.state import State
from sc2standin.requests import console
from sc2standin.requests.commands.errands import Answer, find, obey_at_once, read_errand
from sc2standin.requests.text import text
from sc2standin.simulation import orders
from sc2standin.simulation.economy.offers import meant
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.fights.damage import is_wounded
from sc2standin.simulation.fights.pairs import hostile as are_hostile
from sc2standin.simulation.game import Game
from sc2standin.simulation.spells import can_meet, refusal
from sc2standin.simulation.units import NEUTRAL, Order, Unit
from sc2standin.view.prepared import action_reply, reply_tail

Success = error_pb.Success
_WITHOUT_TARGET = (abilities.STOP, abilities.HOLD)
_FOR_ONE = (OrderKind.BUILD, OrderKind.CALL_MULE, OrderKind.SCAN)
"""The kinds of orders that only the nearest one of several commanded units carries out."""


def action(state: State, request: sc_pb.Request) -> bytes:
    """Carry out the actions of a request; returns the reply."""
    if state.created().scenario.stamp:
        content = request.action.SerializeToString(deterministic=True)
        state.provenance.note_action(content)
    actions = request.action.actions
    if state.crop is not None:
        actions = [
            sc_pb.Action(action_raw=state.crop.asked(one.action_raw))
            if one.HasField("action_raw")
            else one
            for one in actions
        ]
    results = [_perform(state, one) for one in actions]
    return action_reply(results, reply_tail(request, state.status))


def _perform(state: State, one: sc_pb.Action) -> error_pb.ActionResult.ValueType:
    if one.HasField("action_raw"):
        return _perform_raw(state, one)
    if one.HasField("action_chat"):
        state.ask(partial(_say, state, one))
        return Success
    acted = console.act(state, one)
    if isinstance(acted, sc_pb.Action):
        return _command(state, acted, acted.action_raw.unit_command)
    return acted


def _perform_raw(state: State, one: sc_pb.Action) -> error_pb.ActionResult.ValueType:
    raw = one.action_raw
    kind = raw.WhichOneof("action")
    if kind == "unit_command":
        result = _command(state, one, raw.unit_command)
        if result == Success and state.player_options.raw_affects_selection:
            console.select_tagged(state, raw.unit_command.unit_tags)
        return result
    if kind == "camera_move":
        return console.move_camera(state, one)
    if kind is None:
        return error_pb.Error
    # The only kind of action left, `toggle_autocast`, has no effect, but is reported as done.
    state.ask(partial(state.was_done, one))
    return Success


def _say(state: State, one: sc_pb.Action) -> None:
    state.was_done(one)
    said = sc_pb.ChatReceived(player_id=state.player_id, message=text(one.action_chat.message))
    for player in state.players():
        player.chat.append(said)


def _command(
    state: State, one: sc_pb.Action, command: raw_pb.ActionRawUnitCommand
) -> error_pb.ActionResult.ValueType:
    game = state.playing()
    by_tag, economy = game.world.by_tag, game.economies.get(state.player_id)
    asked = command.ability_id
    # A stop takes effect at once, even if the client asked to queue it.
    queued = command.queue_command and abilities.specific(asked) != abilities.STOP
    given: list[tuple[Unit, Order]] = []
    failed = []
    for tag in dict.fromkeys(command.unit_tags):
        unit = by_tag.get(tag)
        ability_id = asked if unit is None else meant(asked, unit, economy)
        order = _order_for(state, unit, ability_id, command, queued)
        if not isinstance(order, Order):
            failed.append(order)
            _note_error(state, command, tag, order)
        elif unit is not None:
            given.append((unit, order))
    if not given:
        return failed[0] if failed else error_pb.Error
    given = _without_others(game, given)
    ability_id = meant(asked, given[0][0], economy)
    if len(given) < len(command.unit_tags) or ability_id != asked:
        one = _obeyed(one, ability_id, [unit for unit, _order in given])
    state.ask(partial(_give, state, one, given, queued))
    return Success


def _without_others(game: Game, given: list[tuple[Unit, Order]]) -> list[tuple[Unit, Order]]:
    """The orders to give. An order whose kind is in `_FOR_ONE` goes only to the nearest unit."""
    for_one = [pair for pair in given if pair[1].kind in _FOR_ONE]
    if len(for_one) < 2:
        return given

    def distance(pair: tuple[Unit, Order]) -> float:
        unit, order = pair
        target = game.world.by_tag.get(order.target_tag, order)
        return math.hypot(target.x - unit.x, target.y - unit.y)

    nearest = min(for_one, key=distance)
    return [pair for pair in given if pair is nearest or pair[1].kind not in _FOR_ONE]


def _obeyed(one: sc_pb.Action, ability_id: int, units: list[Unit]) -> sc_pb.Action:
    """The report of a command, with the specific ability and with only the units that obeyed."""
    obeyed = sc_pb.Action()
    obeyed.CopyFrom(one)
    command = obeyed.action_raw.unit_command
    command.ability_id = ability_id
    command.unit_tags[:] = [unit.tag for unit in units]
    return obeyed


def _note_error(
    state: State,
    command: raw_pb.ActionRawUnitCommand,
    tag: int,
    result: error_pb.ActionResult.ValueType,
) -> None:
    # The ability id may be negative in a command, but not in an error.
    ability_id = max(0, command.ability_id)
    error = sc_pb.ActionError(unit_tag=tag, ability_id=ability_id, result=result)
    state.action_errors.append(error)


def _give(state: State, one: sc_pb.Action, given: list[tuple[Unit, Order]], queued: bool) -> None:
    """Give the units their orders; record an error for each unit that can no longer obey."""
    game, command = state.playing(), one.action_raw.unit_command
    obeyed = []
    for unit, order in given:
        result = _obey(game, unit, order, command.ability_id, queued=queued)
        if result == Success:
            obeyed.append(unit)
        else:
            _note_error(state, command, unit.tag, result)
    if not obeyed:
        return
    if len(obeyed) < len(given):
        one = _obeyed(one, command.ability_id, obeyed)
    state.was_done(console.with_clicks(state, one))


def _obey(
    game: Game, unit: Unit, order: Order, ability_id: int, *, queued: bool
) -> error_pb.ActionResult.ValueType:
    """Let a unit carry out or queue an order; returns Success or the reason for a refusal."""
    economy = game.economies.get(unit.owner)
    if economy is not None and _has_changed(unit, order, ability_id):
        return error_pb.NotSupported
    if economy is None or order.kind < OrderKind.BUILD or order.kind == OrderKind.CHANGE_MODE:
        accepted = orders.give(game.world, unit, order, queued=queued)
        return Success if accepted else error_pb.OrderQueueIsFull
    if order.kind == OrderKind.BUILD:
        return economy.building.order(unit, order, queued=queued)
    if order.makes is not None:
        return economy.make(unit, order)
    return obey_at_once(game, economy, unit, order)


def _has_changed(unit: Unit, order: Order, ability_id: int) -> bool:
    """True if a unit can no longer carry out an earlier command, because its type has changed.

    For example, the unit has lifted off or landed, or an earlier command has made it morph.
    """
    if order.kind == OrderKind.MORPH:
        return ability_id not in abilities.available_to(unit.type)
    return not unit.type.mobile and not takes(unit.type, order.kind)


def _order_for(
    state: State,
    unit: Unit | None,
    ability_id: int,
    command: raw_pb.ActionRawUnitCommand,
    queued: bool,
) -> Answer:
    """The order that a command gives to one unit, or the reason for a refusal."""
    if unit is None:
        return error_pb.Error
    controls_all = (state.player_id, debug_pb.control_enemy) in state.playing().world.cheats
    if unit.owner != state.player_id and not (controls_all and unit.owner != NEUTRAL):
        return error_pb.YouCantIssueCommandsToThatUnit
    if ability_id not in abilities.available_to(unit.type):
        return abilities.refused_to(unit.type).get(ability_id, error_pb.NotSupported)
    game = state.playing()
    errand = read_errand(game, unit, ability_id, command)
    order = _read_order(game, unit, ability_id, command) if errand is None else errand
    if queued and isinstance(order, Order) and orders.is_full(unit):
        return error_pb.OrderQueueIsFull
    return order


def _read_order(
    game: Game, unit: Unit, ability_id: int, command: raw_pb.ActionRawUnitCommand
) -> Answer:
    target = command.WhichOneof("target")
    spell = SPELL_BY_ABILITY.get(ability_id)
    if spell is not None:
        return read_spell(game, unit, spell, command)
    if ability_id in _WITHOUT_TARGET:
        return Order(KIND_BY_ABILITY[ability_id], 0.0, 0.0, 0)
    if target == "target_unit_tag":
        return _order_on_unit(game, unit, ability_id, command.target_unit_tag)
    if target == "target_world_space_pos" and ability_id != abilities.HEAL:
        point = command.target_world_space_pos
        if not game.terrain.on_map(point.x, point.y):
            return error_pb.MustTargetWalkableLocation
        kind = OrderKind.MOVE if ability_id == abilities.SMART else KIND_BY_ABILITY[ability_id]
        return Order(kind, *game.terrain.clamp(point.x, point.y, unit.type.aloft), 0)
    return error_pb.MustTargetUnit


def _order_on_unit(game: Game, unit: Unit, ability_id: int, target_tag: int) -> Answer:
    target = find(game, target_tag, unit.owner)
    if target is None or is_hidden(target, unit.owner):
        return error_pb.MustTargetVisibleUnit
    if target is unit:
        return error_pb.CantTargetThatUnit
    hostile = are_hostile(unit.owner, target.owner) and not target.type.invulnerable
    weapon = unit.type.weapon
    armed = weapon is not None and weapon.hits(target.type)
    if ability_id == abilities.HEAL and not (target.owner == unit.owner and is_wounded(target)):
        return error_pb.RequiresHealTarget
    if ability_id == abilities.ATTACK and not (hostile and armed):
        return _why_no_attack(target, hostile=hostile)
    kind = KIND_BY_ABILITY.get(ability_id, OrderKind.MOVE)
    if ability_id == abilities.SMART and hostile and armed:
        kind = OrderKind.ATTACK
    if target.type.invulnerable or kind == OrderKind.PATROL:
        # Scenery does not block units, so the unit walks to the scenery's own position.
        return Order(kind, *game.terrain.clamp(target.x, target.y, unit.type.aloft), 0)
    return Order(kind, 0.0, 0.0, target.tag)


def _why_no_attack(target: Unit, *, hostile: bool) -> error_pb.ActionResult.ValueType:
    if target.type.invulnerable:
        return error_pb.CantTargetInvulnerableUnits
    if not hostile:
        return error_pb.CantTargetFriendlyUnits
    return error_pb.CantTargetAirUnits if target.type.flies else error_pb.CantTargetGroundUnits


def read_spell(
    game: Game, unit: Unit, spell: Spell, command: raw_pb.ActionRawUnitCommand
) -> Answer:
    """The order to cast a spell on the target of a command, or the reason for a refusal."""
    refused = refusal(unit, spell, game.world.loop)
    if refused != error_pb.Success:
        return refused
    if spell.aim is Aim.SELF:
        return Order(OrderKind.CAST, unit.x, unit.y, 0, spell=spell)
    if spell.aim is Aim.PARTNER:
        return _with_partner(game, unit, spell, command)
    if command.HasField("target_unit_tag"):
        return _on_unit(game, unit, spell, command.target_unit_tag)
    if spell.aim is Aim.UNIT or not command.HasField("target_world_space_pos"):
        return error_pb.MustTargetUnit
    return _on_ground(game, spell, command.target_world_space_pos)


def _on_ground(game: Game, spell: Spell, point: common.Point2D) -> Answer:
    if not game.terrain.on_map(point.x, point.y):
        return error_pb.MustTargetVisibleLocation
    return Order(OrderKind.CAST, *game.terrain.clamp(point.x, point.y, True), 0, spell=spell)


def _with_partner(
    game: Game, unit: Unit, spell: Spell, command: raw_pb.ActionRawUnitCommand
) -> Answer:
    """The order to cast with a partner: the command's first two units are a pair, and so on."""
    by_tag = game.world.by_tag
    tags = [
        tag
        for tag in dict.fromkeys(command.unit_tags)
        if (one := by_tag.get(tag)) and one.owner == unit.owner and one.type.name in spell.casters
    ]
    place = tags.index(unit.tag) ^ 1
    if place >= len(tags):
        return error_pb.CantFindEnoughTargets
    partner = by_tag[tags[place]]
    if unit.order.spell is spell and partner.order == unit.order:
        return unit.order  # both units of a pair are on their way already
    middle = (unit.x + partner.x) / 2, (unit.y + partner.y) / 2
    return Order(OrderKind.CAST, *middle, 0, spell=spell)


def _on_unit(game: Game, unit: Unit, spell: Spell, tag: int) -> Answer:
    target = find(game, tag, unit.owner)
    if target is None or is_hidden(target, unit.owner):
        return error_pb.MustTargetVisibleUnit
    if spell.aim is not Aim.UNIT:
        return Order(OrderKind.CAST, target.x, target.y, 0, spell=spell)
    if not can_meet(spell, unit.owner, target):
        return error_pb.CantTargetThatUnit
    if spell.takes_energy_share and not target.type.energy:
        return error_pb.MustTargetUnitWithEnergy
    return Order(OrderKind.CAST, 0.0, 0.0, target.tag, spell=spell)
