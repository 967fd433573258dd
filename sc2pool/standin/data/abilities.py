"""The abilities of units that walk, shoot, gather, build and train, and the order of each one.

Ids, names and remaps are the real game's. A client may send the specific id (23, Attack) or the
general id (3674); the game always answers with the specific id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from s2clientprotocol import data_pb2 as data_pb

from sc2pool.standin.data.unit_types import UnitType

NO_TARGET = data_pb.AbilityData.Target.Value("None")
POINT_OR_UNIT = data_pb.AbilityData.PointOrUnit
POINT, UNIT = data_pb.AbilityData.Point, data_pb.AbilityData.Unit


class OrderKind(IntEnum):
    """What a unit is doing: the values of `Order.kind`. MOVE and all later kinds have a goal.

    GATHER and all later kinds belong to an economy: a walking unit with such an order is a worker
    on an errand. RALLY and all later kinds are carried out when they are given.
    """

    IDLE = 0
    HOLD = 1
    MOVE = 2
    ATTACK = 3
    PATROL = 4
    HEAL = 5
    SCAN_MOVE = 6
    GATHER = 7
    RETURN = 8
    BUILD = 9
    TRAIN = 10
    RALLY = 11
    MORPH = 12
    CANCEL = 13


SMART, STOP, MOVE, PATROL, HOLD, SCAN_MOVE, ATTACK = 1, 4, 16, 17, 18, 19, 23
HEAL = 386
RALLY_UNITS, RALLY_WORKERS, GATHER, RETURN = 195, 203, 295, 296
BUILD_COMMAND_CENTER, BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS = 318, 319, 320, 321
TRAIN_SCV, TRAIN_MARINE, TRAIN_REAPER = 524, 560, 561
LOWER_DEPOT, RAISE_DEPOT = 556, 558
CANCEL_QUEUED, CANCEL_SITE, HALT = 306, 314, 348
GENERAL_CANCEL_QUEUED, GENERAL_CANCEL_SITE, GENERAL_HALT = 3671, 3659, 3660
GENERAL_GATHER, GENERAL_RETURN, GENERAL_RALLY_UNITS, GENERAL_RALLY_WORKERS = 3666, 3667, 3673, 3690
GENERAL_STOP, GENERAL_ATTACK, GENERAL_HOLD, GENERAL_MOVE, GENERAL_PATROL = (
    3665,
    3674,
    3793,
    3794,
    3795,
)


@dataclass(frozen=True)
class Ability:
    """One row of the game's ability data; `button` equals the API's button_name."""

    id: int
    link_name: str
    link_index: int
    button: str
    friendly_name: str
    target: data_pb.AbilityData.Target.ValueType
    hotkey: str = ""
    remaps_to: int = 0


ABILITIES: tuple[Ability, ...] = (
    Ability(SMART, "", 255, "Smart", "Smart", POINT_OR_UNIT),
    Ability(STOP, "stop", 0, "Stop", "Stop Stop", NO_TARGET, "S", GENERAL_STOP),
    Ability(MOVE, "move", 0, "Move", "Move Move", POINT_OR_UNIT, "M", GENERAL_MOVE),
    Ability(PATROL, "move", 1, "MovePatrol", "Patrol Patrol", POINT_OR_UNIT, "P", GENERAL_PATROL),
    Ability(HOLD, "move", 2, "MoveHoldPosition", "HoldPosition Hold", NO_TARGET, "H", GENERAL_HOLD),
    Ability(
        *(SCAN_MOVE, "move", 3, "AcquireMove", "Scan Move", POINT_OR_UNIT, "A"), GENERAL_ATTACK
    ),
    Ability(ATTACK, "attack", 0, "Attack", "Attack Attack", POINT_OR_UNIT, "A", GENERAL_ATTACK),
    Ability(HEAL, "MedivacHeal", 0, "Heal", "Effect Heal", UNIT, "E"),
    Ability(
        *(RALLY_UNITS, "Rally", 0, "Rally", "Rally Building", POINT_OR_UNIT, "Y"),
        GENERAL_RALLY_UNITS,
    ),
    Ability(
        *(RALLY_WORKERS, "RallyCommand", 0, "Rally", "Rally CommandCenter", POINT_OR_UNIT, "Y"),
        GENERAL_RALLY_WORKERS,
    ),
    Ability(GATHER, "SCVHarvest", 0, "Gather", "Harvest Gather SCV", UNIT, "G", GENERAL_GATHER),
    Ability(
        *(RETURN, "SCVHarvest", 1, "ReturnCargo", "Harvest Return SCV", NO_TARGET, "C"),
        GENERAL_RETURN,
    ),
    Ability(
        BUILD_COMMAND_CENTER, "TerranBuild", 0, "CommandCenter", "Build CommandCenter", POINT, "BC"
    ),
    Ability(BUILD_DEPOT, "TerranBuild", 1, "SupplyDepot", "Build SupplyDepot", POINT, "BS"),
    Ability(BUILD_REFINERY, "TerranBuild", 2, "Refinery", "Build Refinery", UNIT, "BR"),
    Ability(BUILD_BARRACKS, "TerranBuild", 3, "Barracks", "Build Barracks", POINT, "BB"),
    Ability(TRAIN_SCV, "CommandCenterTrain", 0, "SCV", "Train SCV", NO_TARGET, "S"),
    Ability(TRAIN_MARINE, "BarracksTrain", 0, "Marine", "Train Marine", NO_TARGET, "A"),
    Ability(TRAIN_REAPER, "BarracksTrain", 1, "Reaper", "Train Reaper", NO_TARGET, "R"),
    Ability(
        *(LOWER_DEPOT, "SupplyDepotLower", 0, "Lower", "Morph SupplyDepot Lower", NO_TARGET, "R"),
    ),
    Ability(
        *(RAISE_DEPOT, "SupplyDepotRaise", 0, "Raise", "Morph SupplyDepot Raise", NO_TARGET, "R"),
    ),
    Ability(
        *(CANCEL_QUEUED, "que5", 0, "Cancel", "Cancel Queue5", NO_TARGET, "Escape"),
        GENERAL_CANCEL_QUEUED,
    ),
    Ability(
        *(CANCEL_SITE, "BuildInProgress", 0, "Cancel", "Cancel BuildInProgress", NO_TARGET),
        *("Escape", GENERAL_CANCEL_SITE),
    ),
    Ability(*(HALT, "TerranBuild", 30, "Cancel", "Halt TerranBuild", NO_TARGET, "T", GENERAL_HALT)),
    Ability(GENERAL_CANCEL_QUEUED, "CancelLast", 0, "CancelLast", "Cancel Last", NO_TARGET),
    Ability(GENERAL_CANCEL_SITE, "Cancel", 0, "Cancel", "Cancel", NO_TARGET),
    Ability(GENERAL_HALT, "Halt", 0, "Halt", "Halt", NO_TARGET),
    Ability(GENERAL_GATHER, "HarvestGather", 0, "HarvestGather", "Harvest Gather", UNIT),
    Ability(GENERAL_RETURN, "HarvestReturn", 0, "HarvestReturn", "Harvest Return", NO_TARGET),
    Ability(
        GENERAL_RALLY_UNITS, "GeneralRallyUnits", 0, "Rally Units", "Rally Units", POINT_OR_UNIT
    ),
    Ability(
        *(GENERAL_RALLY_WORKERS, "GeneralRallyWorkers", 0, "Rally Workers", "Rally Workers"),
        POINT_OR_UNIT,
    ),
    Ability(GENERAL_STOP, "Stop", 0, "Stop", "Stop", NO_TARGET),
    Ability(GENERAL_ATTACK, "GeneralAttack", 0, "Attack", "Attack", POINT_OR_UNIT),
    Ability(GENERAL_HOLD, "GeneralHoldPosition", 0, "HoldPosition", "HoldPosition", NO_TARGET),
    Ability(GENERAL_MOVE, "GeneralMove", 0, "Move", "Move", POINT_OR_UNIT),
    Ability(GENERAL_PATROL, "GeneralPatrol", 0, "Patrol", "Patrol", POINT_OR_UNIT),
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
    GATHER: OrderKind.GATHER,
    RETURN: OrderKind.RETURN,
    BUILD_COMMAND_CENTER: OrderKind.BUILD,
    BUILD_DEPOT: OrderKind.BUILD,
    BUILD_REFINERY: OrderKind.BUILD,
    BUILD_BARRACKS: OrderKind.BUILD,
    TRAIN_SCV: OrderKind.TRAIN,
    TRAIN_MARINE: OrderKind.TRAIN,
    TRAIN_REAPER: OrderKind.TRAIN,
    RALLY_UNITS: OrderKind.RALLY,
    RALLY_WORKERS: OrderKind.RALLY,
    LOWER_DEPOT: OrderKind.MORPH,
    RAISE_DEPOT: OrderKind.MORPH,
    CANCEL_QUEUED: OrderKind.CANCEL,
    CANCEL_SITE: OrderKind.CANCEL,
    HALT: OrderKind.CANCEL,
}
ABILITY_BY_KIND = {kind: ability for ability, kind in KIND_BY_ABILITY.items()}

WALKER_ABILITIES = (SMART, STOP, MOVE, PATROL, HOLD)
SCOUT_ABILITIES = (*WALKER_ABILITIES, SCAN_MOVE)
FIGHTER_ABILITIES = (*WALKER_ABILITIES, ATTACK)
HEALER_ABILITIES = (*WALKER_ABILITIES, HEAL)
"""The abilities of a mobile unit without a weapon, with one, and of one that heals."""


_OF_THE_ECONOMY = {
    "SCV": (
        *(*FIGHTER_ABILITIES, GATHER, RETURN, HALT, BUILD_COMMAND_CENTER),
        *(BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS),
    ),
    "CommandCenter": (SMART, TRAIN_SCV, RALLY_WORKERS, CANCEL_QUEUED, CANCEL_SITE),
    "SupplyDepot": (LOWER_DEPOT, CANCEL_SITE),
    "SupplyDepotLowered": (RAISE_DEPOT,),
    "Refinery": (CANCEL_SITE,),
    "Barracks": (SMART, TRAIN_MARINE, TRAIN_REAPER, RALLY_UNITS, CANCEL_QUEUED, CANCEL_SITE),
}


def needs_target(ability_id: int) -> bool:
    """True if the ability is used on a point or a unit."""
    return bool(ABILITY_BY_ID[ability_id].target != NO_TARGET)


def specific(ability_id: int, kind: UnitType | None = None) -> int:
    """The specific ability id for a general or specific id, of a unit of this type if given."""
    if ability_id == GENERAL_ATTACK and kind is not None and kind.weapon is None:
        return SCAN_MOVE if SCAN_MOVE in available_to(kind) else ATTACK
    return _SPECIFIC.get(ability_id, ability_id)


_SPECIFIC = {
    ability.remaps_to: ability.id
    for ability in ABILITIES
    if ability.remaps_to and ability.id != SCAN_MOVE
}


def available_to(kind: UnitType) -> tuple[int, ...]:
    """The ability ids of a unit of this type."""
    if kind.name in _OF_THE_ECONOMY:
        return _OF_THE_ECONOMY[kind.name]
    if not kind.mobile:
        return ()
    if kind.heals is not None:
        return HEALER_ABILITIES
    return SCOUT_ABILITIES if kind.weapon is None else FIGHTER_ABILITIES
