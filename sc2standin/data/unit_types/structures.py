"""The Terran structures: on the ground, lifted off, and the add-ons beside them.

The hit points, armor classes and radii of the fortress, turret, bunker, tower and academy are from
memory.

Rules they keep: an add-on is of the kind of the structure that it belongs to (`ADD_ONS`), or of the
bare kind if it belongs to none; a structure that has lifted off is the same one, of another type.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.unit_types.kinds import (
    ARMORED,
    MECHANICAL,
    STRUCTURE,
    UnitType,
    WeaponType,
)

ADD_ON_OFFSET = (2.5, -0.5)
"""Where an add-on stands, from the middle of its structure."""

_structure = partial(
    UnitType,
    race=common.Terran,
    armor=1,
    radius=1.8125,
    sight=9,
    attributes=(ARMORED, MECHANICAL, STRUCTURE),
    footprint=(1.5, 1.5),
)


def _lifted(kind: UnitType, id: int, ability_id: int, radius: float) -> UnitType:
    """A structure after it has lifted off."""
    return replace(
        kind,
        id=id,
        name=f"{kind.name}Flying",
        radius=radius,
        speed_per_s=0.9375,
        flies=True,
        footprint=(0.0, 0.0),
        build_time_loops=32,
        build_ability_id=ability_id,
        tech_requirement_id=0,
        tech_alias_id=kind.tech_alias_id or kind.id,
        made_from=kind,
    )


COMMAND_CENTER = _structure(
    id=18,
    name="CommandCenter",
    life=1500,
    radius=2.75,
    sight=11,
    minerals=400,
    food_provided=15,
    build_time_loops=1600,
    build_ability_id=318,
    footprint=(2.5, 2.5),
)
ORBITAL_COMMAND = replace(
    COMMAND_CENTER,
    id=132,
    name="OrbitalCommand",
    minerals=550,
    build_time_loops=560,
    build_ability_id=1516,
    energy=200,
    energy_at_start=50,
    tech_requirement_id=21,
    tech_alias_id=18,
    made_from=COMMAND_CENTER,
)
PLANETARY_FORTRESS = replace(
    COMMAND_CENTER,
    id=130,
    name="PlanetaryFortress",
    armor=3,
    weapon=WeaponType(damage=40, range=6, cooldown_s=2),
    minerals=550,
    vespene=150,
    build_time_loops=800,
    build_ability_id=1450,
    tech_requirement_id=22,
    tech_alias_id=18,
    made_from=COMMAND_CENTER,
)
TOWN_HALLS = frozenset({COMMAND_CENTER, ORBITAL_COMMAND, PLANETARY_FORTRESS})

SUPPLY_DEPOT = _structure(
    id=19,
    name="SupplyDepot",
    life=400,
    radius=1.25,
    minerals=100,
    food_provided=8,
    build_time_loops=480,
    build_ability_id=319,
    footprint=(1.0, 1.0),
)
_LOWERED_DEPOT = replace(
    SUPPLY_DEPOT,
    id=47,
    name="SupplyDepotLowered",
    build_time_loops=20.80078125,
    build_ability_id=556,
    tech_alias_id=19,
    made_from=SUPPLY_DEPOT,
)
_REFINERY = _structure(
    id=20,
    name="Refinery",
    life=500,
    radius=1.6875,
    minerals=75,
    build_time_loops=480,
    build_ability_id=320,
    has_vespene=True,
)
BARRACKS = _structure(
    id=21,
    name="Barracks",
    life=1000,
    minerals=150,
    build_time_loops=1040,
    build_ability_id=321,
    tech_requirement_id=19,
)
FACTORY = _structure(
    id=27,
    name="Factory",
    life=1250,
    minerals=150,
    vespene=100,
    build_time_loops=960,
    build_ability_id=328,
    tech_requirement_id=21,
)
STARPORT = _structure(
    id=28,
    name="Starport",
    life=1300,
    minerals=150,
    vespene=100,
    build_time_loops=800,
    build_ability_id=329,
    tech_requirement_id=27,
)
_ENGINEERING_BAY = _structure(
    id=22,
    name="EngineeringBay",
    life=850,
    minerals=125,
    build_time_loops=560,
    build_ability_id=322,
    tech_requirement_id=18,
)
_ARMORY = _structure(
    id=29,
    name="Armory",
    life=750,
    minerals=150,
    vespene=100,
    build_time_loops=1040,
    build_ability_id=331,
    tech_requirement_id=27,
)
_FUSION_CORE = _structure(
    id=30,
    name="FusionCore",
    life=750,
    minerals=150,
    vespene=150,
    build_time_loops=1040,
    build_ability_id=333,
    tech_requirement_id=28,
)
_MISSILE_TURRET = _structure(
    id=23,
    name="MissileTurret",
    life=250,
    armor=0,
    radius=1.125,
    sight=11,
    weapon=WeaponType(
        damage=12, range=7, cooldown_s=0.860839844, attacks=2, targets=data_pb.Weapon.Air
    ),
    minerals=100,
    build_time_loops=400,
    build_ability_id=323,
    footprint=(1.0, 1.0),
    tech_requirement_id=22,
    detection=11,
)
_BUNKER = _structure(
    id=24,
    name="Bunker",
    life=400,
    sight=10,
    minerals=100,
    build_time_loops=640,
    build_ability_id=324,
    tech_requirement_id=21,
)
_SENSOR_TOWER = _structure(
    id=25,
    name="SensorTower",
    life=200,
    armor=0,
    radius=0.75,
    sight=12,
    minerals=125,
    vespene=100,
    build_time_loops=400,
    build_ability_id=326,
    footprint=(0.5, 0.5),
    tech_requirement_id=22,
)
_GHOST_ACADEMY = _structure(
    id=26,
    name="GhostAcademy",
    life=1250,
    minerals=150,
    vespene=50,
    build_time_loops=640,
    build_ability_id=327,
    tech_requirement_id=21,
)
TECH_LAB = _structure(
    id=5,
    name="TechLab",
    life=400,
    radius=1.125,
    minerals=50,
    vespene=25,
    build_time_loops=2,
    build_ability_id=1666,
    footprint=(1.0, 1.0),
)
REACTOR = replace(
    TECH_LAB, id=6, name="Reactor", vespene=50, build_time_loops=2, build_ability_id=1674
)
ADD_ONS: dict[tuple[UnitType, UnitType], UnitType] = {
    (owner, bare): replace(
        bare,
        id=id,
        name=f"{owner.name}{bare.name}",
        build_time_loops=400 if bare is TECH_LAB else 800,
        build_ability_id=ability_id,
        tech_alias_id=bare.id,
    )
    for owner, bare, id, ability_id in (
        (BARRACKS, TECH_LAB, 37, 421),
        (BARRACKS, REACTOR, 38, 422),
        (FACTORY, TECH_LAB, 39, 454),
        (FACTORY, REACTOR, 40, 455),
        (STARPORT, TECH_LAB, 41, 487),
        (STARPORT, REACTOR, 42, 488),
    )
}
"""The add-on of a structure, by the structure's type and the bare kind."""
BARE_ADD_ONS = {kind: bare for (_owner, bare), kind in ADD_ONS.items()} | {
    TECH_LAB: TECH_LAB,
    REACTOR: REACTOR,
}
"""The bare kind of each add-on."""

TERRAN_STRUCTURES: tuple[UnitType, ...] = (
    COMMAND_CENTER,
    SUPPLY_DEPOT,
    _LOWERED_DEPOT,
    _REFINERY,
    BARRACKS,
    ORBITAL_COMMAND,
    FACTORY,
    STARPORT,
    _ENGINEERING_BAY,
    _ARMORY,
    _FUSION_CORE,
    PLANETARY_FORTRESS,
    _MISSILE_TURRET,
    _BUNKER,
    _SENSOR_TOWER,
    _GHOST_ACADEMY,
    *BARE_ADD_ONS,
    _lifted(COMMAND_CENTER, 36, 417, radius=2.5),
    _lifted(ORBITAL_COMMAND, 134, 1522, radius=2.5),
    _lifted(BARRACKS, 46, 452, radius=1.75),
    _lifted(FACTORY, 43, 485, radius=1.625),
    _lifted(STARPORT, 44, 518, radius=1.625),
)
