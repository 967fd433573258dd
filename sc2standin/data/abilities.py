"""The abilities of the simulated units, and the kind of order that each ability gives.

The abilities are in `abilities.jsonc`, except those of research, spells, stimpacks and modes. A
client may send an ability's specific id (23, Attack) or its general id (3674). The game always
answers with the specific id, which depends on the unit's type.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import error_pb2 as error_pb

from sc2standin.data.jsonc import Readers, read
from sc2standin.data.research import RESEARCH, RESEARCH_OF
from sc2standin.data.spells import ABILITIES_OF, SPELLS, Aim
from sc2standin.data.unit_types.files import MODES, TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.upgrades import STIMPACKS

NO_TARGET = data_pb.AbilityData.Target.Value("None")
POINT_OR_UNIT, POINT_OR_NONE = data_pb.AbilityData.PointOrUnit, data_pb.AbilityData.PointOrNone
POINT, UNIT = data_pb.AbilityData.Point, data_pb.AbilityData.Unit


class OrderKind(IntEnum):
    """The kinds of orders, by the activity of the unit. MOVE and all later kinds have a goal.

    LAND and all later kinds belong to an economy. A unit that can walk carries out the kinds from
    GATHER to CHANGE_MODE as an `Errand`. A structure carries out the kinds from TRAIN to RESEARCH
    by itself. Orders of RALLY and all later kinds are carried out as soon as they are given.
    """

    IDLE = 0
    HOLD = 1
    MOVE = 2
    ATTACK = 3
    PATROL = 4
    HEAL = 5
    SCAN_MOVE = 6
    CAST = 7
    LAND = 8
    GATHER = 9
    RETURN = 10
    REPAIR = 11
    BUILD = 12
    CHANGE_MODE = 13
    TRAIN = 14
    UPGRADE = 15
    ADD_ON = 16
    LIFT = 17
    RESEARCH = 18
    RALLY = 19
    MORPH = 20
    CALL_MULE = 21
    SCAN = 22
    CANCEL = 23
    STIM = 24
    HALT = 25
    SALVAGE = 26


class Ability(NamedTuple):
    """One ability: some fields of the game's ability data, and fields that the stand-in adds."""

    id: int
    target: data_pb.AbilityData.Target.ValueType = NO_TARGET
    remaps_to: int = 0
    """The ability's general id; 0 if it has none."""
    order: OrderKind | None = None
    """The kind of order that the ability gives a unit."""
    makes: str = ""
    """The name of the type that the ability trains; set only for structures that no map has."""
    refused: error_pb.ActionResult.ValueType = error_pb.NotSupported
    """The error of a command with this ability, for types that list the ability in `refuses`."""


BY_NAME: dict[str, Ability] = {}
"""The abilities of the data file."""
_READERS: Readers = {
    "target": data_pb.AbilityData.Target.Value,
    "remaps_to": lambda name: BY_NAME[name].id,
    "order": OrderKind.__getitem__,
    "refused": error_pb.ActionResult.Value,
}
for _name, _entry in read(Path(__file__).with_name("abilities.jsonc"), _READERS):
    BY_NAME[_name] = Ability(**_entry)


def _ids(*names: str) -> list[int]:
    return [BY_NAME[name].id for name in names]


SMART, STOP, MOVE, PATROL, HOLD = _ids("SMART", "STOP", "MOVE", "PATROL", "HOLD")
SCAN_MOVE, ATTACK, HEAL = _ids("SCAN_MOVE", "ATTACK", "HEAL")
HALT, HALT_SITE = _ids("HALT", "HALT_SITE")
CANCEL_QUEUED, CANCEL_SITE = _ids("CANCEL_QUEUED", "CANCEL_SITE")
CANCEL_ORBITAL, CANCEL_FORTRESS = _ids("CANCEL_ORBITAL", "CANCEL_FORTRESS")
MORPH_TO_BANELING, GENERAL_CANCEL_SITE = _ids("MORPH_TO_BANELING", "GENERAL_CANCEL_SITE")

_AIMS_AT = {Aim.POINT: POINT, Aim.POINT_OR_UNIT: POINT_OR_UNIT, Aim.UNIT: UNIT}
GENERAL_RESEARCH = dict.fromkeys(one.general_id for one in RESEARCH if one.general_id)
"""The general abilities of upgrades with levels."""

ABILITIES: tuple[Ability, ...] = (
    *BY_NAME.values(),
    *(
        Ability(one.build_ability_id, remaps_to=one.general_id, order=OrderKind.RESEARCH)
        for one in RESEARCH
    ),
    *(Ability(one) for one in GENERAL_RESEARCH),
    *(Ability(one.ability_id, order=OrderKind.CHANGE_MODE) for one in MODES.values()),
    *(
        Ability(one.ability_id, remaps_to=BY_NAME["GENERAL_STIM"].id, order=OrderKind.STIM)
        for one in STIMPACKS.values()
    ),
    *(
        Ability(spell.ability_id, _AIMS_AT.get(spell.aim, NO_TARGET), order=OrderKind.CAST)
        for spell in SPELLS
    ),
)

ABILITY_BY_ID = {ability.id: ability for ability in ABILITIES}
KIND_BY_ABILITY = {ability.id: ability.order for ability in ABILITIES if ability.order is not None}
_ABILITY_BY_KIND = {kind: ability for ability, kind in reversed(KIND_BY_ABILITY.items())}
TRAINED_BY_ABILITY = {ability.id: ability.makes for ability in ABILITIES if ability.makes}
"""The values of `Ability.makes`, by the ids of the abilities."""

WALKER_ABILITIES = (SMART, STOP, MOVE, PATROL, HOLD)
SCOUT_ABILITIES = (*WALKER_ABILITIES, SCAN_MOVE)
FIGHTER_ABILITIES = (*WALKER_ABILITIES, ATTACK)
HEALER_ABILITIES = (*SCOUT_ABILITIES, HEAL)
"""The abilities of all mobile units, of unarmed units, of armed units, and of healers."""
ROOTED_ABILITIES = (SMART, STOP, HOLD, ATTACK)


def trained_by(ability_id: int) -> UnitType | None:
    """The type that an ability of a Protoss or Zerg structure trains; None for other abilities."""
    name = TRAINED_BY_ABILITY.get(ability_id)
    return None if name is None else TYPE_BY_NAME[name]


def needs_target(ability_id: int) -> bool:
    """True if the ability is always used on a point or a unit."""
    return ABILITY_BY_ID[ability_id].target not in (NO_TARGET, POINT_OR_NONE)


@lru_cache(maxsize=4096)  # the cache is bounded, because a client may send any id
def specific(ability_id: int, kind: UnitType | None = None) -> int:
    """Turn a general or specific id into the specific id, for units of type `kind` if given."""
    if ability_id not in _SPECIFIC:
        return ability_id
    own = () if kind is None else (*available_to(kind), *refused_to(kind))
    found = (one for one in own if ABILITY_BY_ID[one].remaps_to == ability_id)
    return next(found, _SPECIFIC[ability_id])


_SPECIFIC = {ability.remaps_to: ability.id for ability in reversed(ABILITIES) if ability.remaps_to}
"""For each general id, the first of the specific ids that it can mean."""


@cache
def shown_as(kind: UnitType, order: OrderKind) -> int:
    """The id of the ability that a unit of this type shows for an order of this kind."""
    own = (one for one in available_to(kind) if KIND_BY_ABILITY.get(one) == order)
    return next(own, _ABILITY_BY_KIND[order])


@cache
def takes(kind: UnitType, order: OrderKind) -> bool:
    """True if units of this type accept orders of this kind."""
    own = available_to(kind)
    by_click = OrderKind.MOVE if kind.afloat else OrderKind.RALLY
    return (SMART in own and order == by_click) or any(
        KIND_BY_ABILITY.get(one) == order for one in own
    )


@cache
def available_to(kind: UnitType) -> tuple[int, ...]:
    """The ability ids of a unit of this type."""
    return (*_usual(kind), *ABILITIES_OF.get(kind.name, ()))


@cache
def refused_to(kind: UnitType) -> dict[int, error_pb.ActionResult.ValueType]:
    """The abilities on a type's command card that the stand-in refuses, with their results."""
    return {BY_NAME[name].id: BY_NAME[name].refused for name in kind.refuses}


def _usual(kind: UnitType) -> tuple[int, ...]:
    """The ids of a type's abilities, except its spells."""
    own = tuple(BY_NAME[name].id for name in kind.commands)
    if kind.name in RESEARCH_OF:
        research = tuple(one.build_ability_id for one in RESEARCH_OF[kind.name])
        return tuple(dict.fromkeys((*own, *research, CANCEL_QUEUED)))
    if own or not kind.mobile:
        return own
    basic: tuple[int, ...]
    special = STIMPACKS.get(kind.name) or MODES.get(kind.name)
    if kind.heals is not None:
        basic = HEALER_ABILITIES
    elif kind.rooted:
        basic = ROOTED_ABILITIES
    else:
        basic = SCOUT_ABILITIES if kind.weapon is None else FIGHTER_ABILITIES
    return basic if special is None else (*basic, special.ability_id)
