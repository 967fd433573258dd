"""The abilities of the units that the simulation has, and the order of each one.

Ids, targets and remaps are the real game's. A client may send the specific id (23, Attack) or the
general id (3674); the game always answers with the specific id, which depends on the unit's type.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple

from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.research import RESEARCH, RESEARCH_OF
from sc2standin.data.spells import ABILITIES_OF, SPELL_BY_ABILITY, SPELLS, Aim
from sc2standin.data.training import TRAINED_BY_ABILITY, TRAINERS
from sc2standin.data.unit_types import MODES, UnitType
from sc2standin.data.upgrades import STIMPACKS

NO_TARGET = data_pb.AbilityData.Target.Value("None")
POINT_OR_UNIT, POINT_OR_NONE = data_pb.AbilityData.PointOrUnit, data_pb.AbilityData.PointOrNone
POINT, UNIT = data_pb.AbilityData.Point, data_pb.AbilityData.Unit


class OrderKind(IntEnum):
    """What a unit is doing: the values of `Order.kind`. MOVE and all later kinds have a goal.

    LAND and all later kinds belong to an economy. With GATHER to CHANGE_MODE a walking unit is
    on an errand; TRAIN to RESEARCH are what a structure does by itself; RALLY and all later kinds
    are carried out when they are given.
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


SMART, STOP, MOVE, PATROL, HOLD, SCAN_MOVE, ATTACK = 1, 4, 16, 17, 18, 19, 23
HEAL = 386
GENERAL_STIM = 3675
_STIMS = tuple(one.ability_id for one in STIMPACKS.values())
RALLY_UNITS, RALLY_WORKERS, GATHER, RETURN = 195, 203, 295, 296
BUILD_COMMAND_CENTER, BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS = 318, 319, 320, 321
BUILD_ENGINEERING_BAY, BUILD_FACTORY, BUILD_STARPORT = 322, 328, 329
BUILD_ARMORY, BUILD_FUSION_CORE = 331, 333
BUILD_TURRET, BUILD_BUNKER, BUILD_SENSOR_TOWER, BUILD_GHOST_ACADEMY = 323, 324, 326, 327
TRAIN_SCV, TRAIN_MARINE, TRAIN_REAPER, TRAIN_MARAUDER = 524, 560, 561, 563
TRAIN_SIEGE_TANK, TRAIN_HELLION, TRAIN_HELLBAT, TRAIN_CYCLONE = 591, 595, 596, 597
TRAIN_MEDIVAC, TRAIN_BANSHEE, TRAIN_BATTLECRUISER, TRAIN_VIKING = 620, 621, 623, 624
LOWER_DEPOT, RAISE_DEPOT = 556, 558
MORPH_TO_BANELING = 80
UPGRADE_TO_ORBITAL, CALL_MULE, SCAN = 1516, 171, 399
UPGRADE_TO_FORTRESS, CANCEL_FORTRESS = 1450, 1451
MULE_GATHER, MULE_RETURN = 166, 167
REPAIR, MULE_REPAIR, GENERAL_REPAIR = 316, 78, 3685
CANCEL_QUEUED, CANCEL_SITE, HALT = 306, 314, 348
CANCEL_BARRACKS_ADD_ON, CANCEL_FACTORY_ADD_ON, CANCEL_STARPORT_ADD_ON = 451, 484, 517
CANCEL_ORBITAL = 1517
GENERAL_CANCEL_QUEUED, GENERAL_CANCEL_SITE, GENERAL_HALT = 3671, 3659, 3660
GENERAL_GATHER, GENERAL_RETURN, GENERAL_RALLY_UNITS, GENERAL_RALLY_WORKERS = 3666, 3667, 3673, 3690
GENERAL_LAND, GENERAL_LIFT, GENERAL_TECH_LAB, GENERAL_REACTOR = 3678, 3679, 3682, 3683
GENERAL_STOP, GENERAL_ATTACK, GENERAL_HOLD, GENERAL_MOVE, GENERAL_PATROL = (
    3665,
    3674,
    3793,
    3794,
    3795,
)
_TECH_LABS, _REACTORS = (421, 454, 487), (422, 455, 488)
"""Barracks, factory, starport."""
_LIFTS = (452, 485, 518, 417, 1522)
_LANDS = (554, 520, 522, 419, 1524)
"""Barracks, factory, starport, command center, orbital command."""
_CANCELS_OF_ADD_ONS = (CANCEL_BARRACKS_ADD_ON, CANCEL_FACTORY_ADD_ON, CANCEL_STARPORT_ADD_ON)
_BUILDS = (
    *(BUILD_COMMAND_CENTER, BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS, BUILD_ENGINEERING_BAY),
    *(BUILD_FACTORY, BUILD_STARPORT, BUILD_ARMORY, BUILD_FUSION_CORE),
    *(BUILD_TURRET, BUILD_BUNKER, BUILD_SENSOR_TOWER, BUILD_GHOST_ACADEMY),
)
_TRAINS = (
    *(TRAIN_SCV, TRAIN_MARINE, TRAIN_REAPER, TRAIN_MARAUDER),
    *(TRAIN_SIEGE_TANK, TRAIN_HELLION, TRAIN_HELLBAT, TRAIN_CYCLONE),
    *(TRAIN_MEDIVAC, TRAIN_BANSHEE, TRAIN_BATTLECRUISER, TRAIN_VIKING),
)

GENERAL_RESEARCH = dict.fromkeys(one.general_id for one in RESEARCH if one.general_id)
"""The abilities that stand for all levels of an upgrade."""


_TARGET_OF = {
    Aim.SELF: NO_TARGET,
    Aim.POINT: POINT,
    Aim.POINT_OR_UNIT: POINT_OR_UNIT,
    Aim.UNIT: UNIT,
    Aim.PARTNER: NO_TARGET,
}


class Ability(NamedTuple):
    """What the simulation needs of a row of the game's ability data."""

    id: int
    target: data_pb.AbilityData.Target.ValueType
    remaps_to: int = 0


ABILITIES: tuple[Ability, ...] = (
    Ability(SMART, POINT_OR_UNIT),
    Ability(STOP, NO_TARGET, GENERAL_STOP),
    Ability(MOVE, POINT_OR_UNIT, GENERAL_MOVE),
    Ability(PATROL, POINT_OR_UNIT, GENERAL_PATROL),
    Ability(HOLD, NO_TARGET, GENERAL_HOLD),
    Ability(ATTACK, POINT_OR_UNIT, GENERAL_ATTACK),
    Ability(SCAN_MOVE, POINT_OR_UNIT, GENERAL_ATTACK),
    Ability(HEAL, UNIT),
    Ability(RALLY_UNITS, POINT_OR_UNIT, GENERAL_RALLY_UNITS),
    Ability(RALLY_WORKERS, POINT_OR_UNIT, GENERAL_RALLY_WORKERS),
    Ability(GATHER, UNIT, GENERAL_GATHER),
    Ability(RETURN, NO_TARGET, GENERAL_RETURN),
    Ability(MULE_GATHER, UNIT, GENERAL_GATHER),
    Ability(MULE_RETURN, NO_TARGET, GENERAL_RETURN),
    Ability(REPAIR, UNIT, GENERAL_REPAIR),
    Ability(MULE_REPAIR, UNIT, GENERAL_REPAIR),
    *(Ability(one, UNIT if one == BUILD_REFINERY else POINT) for one in _BUILDS),
    *(Ability(one, NO_TARGET) for one in (*_TRAINS, *TRAINED_BY_ABILITY)),
    *(Ability(one.build_ability_id, NO_TARGET, one.general_id) for one in RESEARCH),
    *(Ability(one, NO_TARGET) for one in GENERAL_RESEARCH),
    *(Ability(one, POINT_OR_NONE, GENERAL_TECH_LAB) for one in _TECH_LABS),
    *(Ability(one, POINT_OR_NONE, GENERAL_REACTOR) for one in _REACTORS),
    *(Ability(one, NO_TARGET, GENERAL_LIFT) for one in _LIFTS),
    *(Ability(one, POINT, GENERAL_LAND) for one in _LANDS),
    Ability(LOWER_DEPOT, NO_TARGET),
    Ability(RAISE_DEPOT, NO_TARGET),
    Ability(MORPH_TO_BANELING, NO_TARGET),
    Ability(UPGRADE_TO_ORBITAL, NO_TARGET),
    Ability(UPGRADE_TO_FORTRESS, NO_TARGET),
    *(Ability(one.ability_id, NO_TARGET) for one in MODES.values()),
    Ability(CALL_MULE, POINT_OR_UNIT),
    Ability(SCAN, POINT),
    Ability(CANCEL_QUEUED, NO_TARGET, GENERAL_CANCEL_QUEUED),
    Ability(CANCEL_SITE, NO_TARGET, GENERAL_CANCEL_SITE),
    *(Ability(one, NO_TARGET, GENERAL_CANCEL_SITE) for one in _CANCELS_OF_ADD_ONS),
    Ability(CANCEL_ORBITAL, NO_TARGET, GENERAL_CANCEL_SITE),
    Ability(CANCEL_FORTRESS, NO_TARGET, GENERAL_CANCEL_SITE),
    Ability(HALT, NO_TARGET, GENERAL_HALT),
    Ability(GENERAL_CANCEL_QUEUED, NO_TARGET),
    Ability(GENERAL_CANCEL_SITE, NO_TARGET),
    Ability(GENERAL_HALT, NO_TARGET),
    Ability(GENERAL_GATHER, UNIT),
    Ability(GENERAL_RETURN, NO_TARGET),
    Ability(GENERAL_REPAIR, UNIT),
    Ability(GENERAL_RALLY_UNITS, POINT_OR_UNIT),
    Ability(GENERAL_RALLY_WORKERS, POINT_OR_UNIT),
    Ability(GENERAL_TECH_LAB, POINT_OR_NONE),
    Ability(GENERAL_REACTOR, POINT_OR_NONE),
    Ability(GENERAL_LIFT, NO_TARGET),
    Ability(GENERAL_LAND, POINT),
    *(Ability(one, NO_TARGET, GENERAL_STIM) for one in _STIMS),
    Ability(GENERAL_STIM, NO_TARGET),
    Ability(GENERAL_STOP, NO_TARGET),
    Ability(GENERAL_ATTACK, POINT_OR_UNIT),
    Ability(GENERAL_HOLD, NO_TARGET),
    Ability(GENERAL_MOVE, POINT_OR_UNIT),
    Ability(GENERAL_PATROL, POINT_OR_UNIT),
    *(Ability(spell.ability_id, _TARGET_OF[spell.aim]) for spell in SPELLS),
)

ABILITY_BY_ID = {ability.id: ability for ability in ABILITIES}

KIND_BY_ABILITY = {
    STOP: OrderKind.IDLE,
    MOVE: OrderKind.MOVE,
    ATTACK: OrderKind.ATTACK,
    PATROL: OrderKind.PATROL,
    HOLD: OrderKind.HOLD,
    SCAN_MOVE: OrderKind.SCAN_MOVE,
    HEAL: OrderKind.HEAL,
    **dict.fromkeys(_LANDS, OrderKind.LAND),
    **dict.fromkeys((GATHER, MULE_GATHER), OrderKind.GATHER),
    **dict.fromkeys((RETURN, MULE_RETURN), OrderKind.RETURN),
    **dict.fromkeys((REPAIR, MULE_REPAIR), OrderKind.REPAIR),
    **dict.fromkeys(_BUILDS, OrderKind.BUILD),
    **dict.fromkeys((*_TRAINS, *TRAINED_BY_ABILITY), OrderKind.TRAIN),
    UPGRADE_TO_ORBITAL: OrderKind.UPGRADE,
    UPGRADE_TO_FORTRESS: OrderKind.UPGRADE,
    **dict.fromkeys((one.ability_id for one in MODES.values()), OrderKind.CHANGE_MODE),
    **dict.fromkeys((*_TECH_LABS, *_REACTORS), OrderKind.ADD_ON),
    **dict.fromkeys(_LIFTS, OrderKind.LIFT),
    **dict.fromkeys((one.build_ability_id for one in RESEARCH), OrderKind.RESEARCH),
    **dict.fromkeys((RALLY_UNITS, RALLY_WORKERS), OrderKind.RALLY),
    **dict.fromkeys((LOWER_DEPOT, RAISE_DEPOT, MORPH_TO_BANELING), OrderKind.MORPH),
    CALL_MULE: OrderKind.CALL_MULE,
    SCAN: OrderKind.SCAN,
    **dict.fromkeys(_STIMS, OrderKind.STIM),
    **dict.fromkeys((CANCEL_QUEUED, CANCEL_SITE, HALT), OrderKind.CANCEL),
    **dict.fromkeys((*_CANCELS_OF_ADD_ONS, CANCEL_ORBITAL, CANCEL_FORTRESS), OrderKind.CANCEL),
    **dict.fromkeys(SPELL_BY_ABILITY, OrderKind.CAST),
}
_ABILITY_BY_KIND = {kind: ability for ability, kind in reversed(KIND_BY_ABILITY.items())}

WALKER_ABILITIES = (SMART, STOP, MOVE, PATROL, HOLD)
SCOUT_ABILITIES = (*WALKER_ABILITIES, SCAN_MOVE)
FIGHTER_ABILITIES = (*WALKER_ABILITIES, ATTACK)
HEALER_ABILITIES = (*WALKER_ABILITIES, HEAL)
"""The abilities of a mobile unit without a weapon, with one, and of one that heals."""
ROOTED_ABILITIES = (SMART, STOP, HOLD, ATTACK)

_TRAINERS = {
    "Barracks": (TRAIN_MARINE, TRAIN_REAPER, TRAIN_MARAUDER),
    "Factory": (TRAIN_HELLION, TRAIN_HELLBAT, TRAIN_CYCLONE, TRAIN_SIEGE_TANK),
    "Starport": (TRAIN_VIKING, TRAIN_MEDIVAC, TRAIN_BANSHEE, TRAIN_BATTLECRUISER),
}
_ONLY_BUILT = (
    *("Refinery", "EngineeringBay", "Armory", "FusionCore", "GhostAcademy"),
    *("MissileTurret", "Bunker", "SensorTower"),
)
_OF_THE_ECONOMY = {
    "SCV": (*FIGHTER_ABILITIES, GATHER, RETURN, REPAIR, HALT, *_BUILDS),
    "Zergling": (*FIGHTER_ABILITIES, MORPH_TO_BANELING),
    **{
        name: (SMART, *trains, RALLY_UNITS, CANCEL_QUEUED, CANCEL_SITE)
        for name, trains in TRAINERS.items()
    },
    "MULE": (*WALKER_ABILITIES, MULE_GATHER, MULE_RETURN, MULE_REPAIR),
    "CommandCenter": (
        *(SMART, TRAIN_SCV, UPGRADE_TO_ORBITAL, UPGRADE_TO_FORTRESS, 417, RALLY_WORKERS),
        *(CANCEL_QUEUED, CANCEL_SITE, CANCEL_ORBITAL, CANCEL_FORTRESS),
    ),
    "PlanetaryFortress": (SMART, TRAIN_SCV, RALLY_WORKERS, CANCEL_QUEUED),
    "OrbitalCommand": (*(SMART, TRAIN_SCV, CALL_MULE, SCAN, 1522, RALLY_WORKERS, CANCEL_QUEUED),),
    "SupplyDepot": (LOWER_DEPOT, CANCEL_SITE),
    "SupplyDepotLowered": (RAISE_DEPOT,),
    **{
        name: (
            *(SMART, *trains, tech_lab, reactor, lift, RALLY_UNITS),
            *(CANCEL_QUEUED, CANCEL_SITE, cancel),
        )
        for (name, trains), tech_lab, reactor, lift, cancel in zip(
            _TRAINERS.items(), _TECH_LABS, _REACTORS, _LIFTS, _CANCELS_OF_ADD_ONS, strict=False
        )
    },
    **dict.fromkeys(_ONLY_BUILT, (CANCEL_SITE,)),
    **{
        f"{name}Flying": (*WALKER_ABILITIES, land)
        for name, land in zip((*_TRAINERS, "CommandCenter", "OrbitalCommand"), _LANDS, strict=True)
    },
}


def needs_target(ability_id: int) -> bool:
    """True if the ability is always used on a point or a unit."""
    return ABILITY_BY_ID[ability_id].target not in (NO_TARGET, POINT_OR_NONE)


@lru_cache(maxsize=4096)  # a client may send any number
def specific(ability_id: int, kind: UnitType | None = None) -> int:
    """The specific ability id for a general or specific id, of a unit of this type if given."""
    if ability_id not in _SPECIFIC:
        return ability_id
    own = () if kind is None else available_to(kind)
    found = (one for one in own if ABILITY_BY_ID[one].remaps_to == ability_id)
    return next(found, _SPECIFIC[ability_id])


_SPECIFIC = {ability.remaps_to: ability.id for ability in reversed(ABILITIES) if ability.remaps_to}
"""The first specific id of each general one."""


@cache
def shown_as(kind: UnitType, order: OrderKind) -> int:
    """The ability that an order of this kind shows, given to a unit of this type."""
    own = (one for one in available_to(kind) if KIND_BY_ABILITY.get(one) == order)
    return next(own, _ABILITY_BY_KIND[order])


@cache
def takes(kind: UnitType, order: OrderKind) -> bool:
    """True if units of this type take orders of this kind."""
    own = available_to(kind)
    by_click = OrderKind.MOVE if kind.afloat else OrderKind.RALLY
    return (SMART in own and order == by_click) or any(
        KIND_BY_ABILITY.get(one) == order for one in own
    )


@cache
def available_to(kind: UnitType) -> tuple[int, ...]:
    """The ability ids of a unit of this type."""
    return (*_usual(kind), *ABILITIES_OF.get(kind.name, ()))


def _usual(kind: UnitType) -> tuple[int, ...]:
    """Those but for its spells."""
    own = _OF_THE_ECONOMY.get(kind.name, ())
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
