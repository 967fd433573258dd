"""Commands to cast: the order of one, or why it cannot be cast."""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.spells import Aim, Spell
from sc2standin.requests.commands.errands import find
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.spells import can_meet, refusal
from sc2standin.simulation.units import Order, Unit


def read_spell(
    game: Game, unit: Unit, spell: Spell, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType:
    """The order to cast a spell on the target of a command."""
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


def _on_ground(
    game: Game, spell: Spell, point: common.Point2D
) -> Order | error_pb.ActionResult.ValueType:
    if not game.terrain.on_map(point.x, point.y):
        return error_pb.MustTargetVisibleLocation
    return Order(OrderKind.CAST, *game.terrain.clamp(point.x, point.y, True), 0, spell=spell)


def _with_partner(
    game: Game, unit: Unit, spell: Spell, command: raw_pb.ActionRawUnitCommand
) -> Order | error_pb.ActionResult.ValueType:
    """With the next one of the units that got this command: they go to meet each other."""
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
        return unit.order  # they are on their way
    middle = (unit.x + partner.x) / 2, (unit.y + partner.y) / 2
    return Order(OrderKind.CAST, *middle, 0, spell=spell)


def _on_unit(
    game: Game, unit: Unit, spell: Spell, tag: int
) -> Order | error_pb.ActionResult.ValueType:
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
