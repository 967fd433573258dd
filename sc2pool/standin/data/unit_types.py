"""Every unit type the stand-in knows, as data.

The numbers are the real game's at normal speed: a second here is 16 game loops, as in the API's
`UnitTypeData`. The API lacks hit points and radii; these are the unit editor's, but
those of sentry, dark templar, observer and archon, and the range of detection, are from memory and
not verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

LOOPS_PER_SECOND = 16
"""Game loops per second of unit data (real time has 22.4 loops per second, see `process.clock`)."""

LIGHT, ARMORED = data_pb.Light, data_pb.Armored
BIOLOGICAL, MECHANICAL, STRUCTURE = data_pb.Biological, data_pb.Mechanical, data_pb.Structure
MASSIVE, PSIONIC = data_pb.Massive, data_pb.Psionic


@dataclass(frozen=True)
class WeaponType:
    """One weapon; `cooldown_s` is the time from one attack to the next.

    A weapon with a `splash` is the unit's own explosion: it hits every enemy whose edge is within
    this distance of the unit's centre, when the unit attacks and when it is killed.
    """

    damage: float
    range: float
    cooldown_s: float
    attacks: int = 1
    targets: data_pb.Weapon.TargetType.ValueType = data_pb.Weapon.Ground
    bonus: tuple[data_pb.Attribute.ValueType, float] | None = None
    splash: float = 0.0
    beam: float = 0.0
    """Distance to both sides of the target, across the shot, at which other enemies are hit."""

    @cached_property
    def cooldown_loops(self) -> float:
        """Loops from one attack to the next."""
        return self.cooldown_s * LOOPS_PER_SECOND

    def hits(self, target: UnitType) -> bool:
        """True if the weapon can be aimed at units of this type."""
        if self.targets == data_pb.Weapon.Any:
            return True
        return target.flies != (self.targets == data_pb.Weapon.Ground)


@dataclass(frozen=True)
class HealType:
    """What heals wounded biological units of the same owner."""

    range: float
    life_per_s: float
    life_per_energy: float

    @cached_property
    def life_per_loop(self) -> float:
        """Life that comes back in a loop."""
        return self.life_per_s / LOOPS_PER_SECOND


@dataclass(frozen=True, eq=False)  # there is one object of each type
class UnitType:
    """The data of one type of unit."""

    id: int
    name: str
    race: common.Race.ValueType = common.NoRace
    life: float = 0.0
    shields: float = 0.0
    armor: float = 0.0
    radius: float = 0.375
    speed_per_s: float = 0.0
    sight: float = 0.0
    weapon: WeaponType | None = None
    attributes: tuple[data_pb.Attribute.ValueType, ...] = ()
    minerals: int = 0
    vespene: int = 0
    food: float = 0.0
    food_provided: float = 0.0
    cargo_size: int = 0
    build_time_loops: float = 0.0
    build_ability_id: int = 0
    has_minerals: bool = False
    has_vespene: bool = False
    footprint: tuple[float, float] = (0.0, 0.0)
    """Half the width and height of the cells that the unit stands on, for structures."""
    tech_requirement_id: int = 0
    """The type of the structure without which this one cannot be made, 0 for none."""
    tech_alias_id: int = 0
    """The type that this one also counts as, 0 for none."""
    life_per_s: float = 0.0
    """Life that comes back by itself."""
    energy: float = 0.0
    """The most energy that the unit can have."""
    energy_at_start: float = 0.0
    energy_per_s: float = 0.0
    heals: HealType | None = None
    flies: bool = False
    strides: bool = False
    """True if cliffs and other ground units are no obstacle."""
    cloaked: bool = False
    """True if enemies see the unit only where they detect it."""
    detection: float = 0.0
    """Distance at which the unit detects cloaked ones, in cells."""
    passive: bool = False
    """True if the unit fires and heals only when it is ordered to."""

    @cached_property
    def mobile(self) -> bool:
        """True if the unit can walk."""
        return self.speed_per_s > 0

    @cached_property
    def blocks(self) -> bool:
        """True if no unit walks over what this one stands on."""
        return self.footprint[0] > 0 and self.name != "SupplyDepotLowered"

    @cached_property
    def recovers(self) -> bool:
        """True if shields, life or energy come back by themselves."""
        return self.shields > 0 or self.life_per_s > 0 or self.energy_per_s > 0

    @cached_property
    def aloft(self) -> bool:
        """True if the unit passes over cliffs and ground units; it collides with its like."""
        return self.flies or self.strides

    @cached_property
    def invulnerable(self) -> bool:
        """True for scenery: it has no life, cannot be attacked and blocks no unit."""
        return self.life == 0

    @cached_property
    def step(self) -> float:
        """Distance walked in one loop, in cells."""
        return self.speed_per_s / LOOPS_PER_SECOND


SCV = UnitType(
    id=45,
    name="SCV",
    race=common.Terran,
    life=45,
    speed_per_s=2.8125,
    sight=8,
    weapon=WeaponType(damage=5, range=0.100097656, cooldown_s=1.5),
    attributes=(LIGHT, BIOLOGICAL, MECHANICAL),
    minerals=50,
    food=1,
    cargo_size=1,
    build_time_loops=272,
    build_ability_id=524,
)
COMMAND_CENTER = UnitType(
    id=18,
    name="CommandCenter",
    race=common.Terran,
    life=1500,
    armor=1,
    radius=2.75,
    sight=11,
    attributes=(ARMORED, MECHANICAL, STRUCTURE),
    minerals=400,
    food_provided=15,
    build_time_loops=1600,
    build_ability_id=318,
    footprint=(2.5, 2.5),
)

UNIT_TYPES: tuple[UnitType, ...] = (
    UnitType(
        id=4,
        name="Colossus",
        race=common.Protoss,
        life=200,
        shields=150,
        armor=1,
        radius=1.0,
        speed_per_s=2.25,
        sight=10,
        weapon=WeaponType(
            damage=10, range=7, cooldown_s=1.5, attacks=2, bonus=(LIGHT, 5), beam=1.4
        ),
        attributes=(ARMORED, MECHANICAL, MASSIVE),
        minerals=300,
        vespene=200,
        food=6,
        cargo_size=8,
        build_time_loops=1200,
        build_ability_id=978,
        strides=True,
    ),
    UnitType(
        id=9,
        name="Baneling",
        race=common.Zerg,
        life=30,
        speed_per_s=2.5,
        sight=8,
        weapon=WeaponType(damage=16, range=0.25, cooldown_s=0.833, bonus=(LIGHT, 19), splash=2.2),
        attributes=(BIOLOGICAL,),
        minerals=50,
        vespene=25,
        food=0.5,
        cargo_size=2,
        build_time_loops=320,
        build_ability_id=80,
    ),
    UnitType(
        id=48,
        name="Marine",
        race=common.Terran,
        life=45,
        speed_per_s=2.25,
        sight=9,
        weapon=WeaponType(damage=6, range=5, cooldown_s=0.860839844, targets=data_pb.Weapon.Any),
        attributes=(LIGHT, BIOLOGICAL),
        minerals=50,
        food=1,
        cargo_size=1,
        build_time_loops=400,
        build_ability_id=560,
    ),
    UnitType(
        id=49,
        name="Reaper",
        race=common.Terran,
        life=60,
        speed_per_s=3.75,
        sight=9,
        weapon=WeaponType(damage=4, range=5, cooldown_s=1.10009766, attacks=2),
        attributes=(LIGHT, BIOLOGICAL),
        minerals=50,
        vespene=50,
        food=1,
        cargo_size=1,
        build_time_loops=720,
        build_ability_id=561,
    ),
    UnitType(
        id=51,
        name="Marauder",
        race=common.Terran,
        life=125,
        armor=1,
        radius=0.5625,
        speed_per_s=2.25,
        sight=10,
        weapon=WeaponType(damage=10, range=6, cooldown_s=1.5, bonus=(ARMORED, 10)),
        attributes=(ARMORED, BIOLOGICAL),
        minerals=100,
        vespene=25,
        food=2,
        cargo_size=2,
        build_time_loops=480,
        build_ability_id=563,
    ),
    UnitType(
        id=54,
        name="Medivac",
        race=common.Terran,
        life=150,
        armor=1,
        radius=0.75,
        speed_per_s=2.5,
        sight=11,
        attributes=(ARMORED, MECHANICAL),
        minerals=100,
        vespene=100,
        food=2,
        build_time_loops=672,
        build_ability_id=620,
        energy=200,
        energy_at_start=50,
        energy_per_s=0.5625,
        heals=HealType(range=4, life_per_s=9, life_per_energy=3),
        flies=True,
    ),
    UnitType(
        id=73,
        name="Zealot",
        race=common.Protoss,
        life=100,
        shields=50,
        armor=1,
        radius=0.5,
        speed_per_s=2.25,
        sight=9,
        weapon=WeaponType(damage=8, range=0.1, cooldown_s=1.2, attacks=2),
        attributes=(LIGHT, BIOLOGICAL),
        minerals=100,
        food=2,
        cargo_size=2,
        build_time_loops=608,
        build_ability_id=916,
    ),
    UnitType(
        id=74,
        name="Stalker",
        race=common.Protoss,
        life=80,
        shields=80,
        armor=1,
        radius=0.625,
        speed_per_s=2.953125,
        sight=10,
        weapon=WeaponType(
            damage=13,
            range=6,
            cooldown_s=1.87,
            targets=data_pb.Weapon.Any,
            bonus=(ARMORED, 5),
        ),
        attributes=(ARMORED, MECHANICAL),
        minerals=125,
        vespene=50,
        food=2,
        cargo_size=2,
        build_time_loops=672,
        build_ability_id=917,
    ),
    UnitType(
        id=76,
        name="DarkTemplar",
        race=common.Protoss,
        life=40,
        shields=80,
        armor=1,
        speed_per_s=2.8125,
        sight=8,
        weapon=WeaponType(damage=45, range=0.100097656, cooldown_s=1.6940918),
        attributes=(LIGHT, BIOLOGICAL, PSIONIC),
        minerals=125,
        vespene=125,
        food=2,
        cargo_size=2,
        build_time_loops=880,
        build_ability_id=920,
        cloaked=True,
    ),
    UnitType(  # its beam is no weapon in the API's tables, either
        id=77,
        name="Sentry",
        race=common.Protoss,
        life=40,
        shields=40,
        armor=1,
        radius=0.5,
        speed_per_s=2.25,
        sight=10,
        attributes=(LIGHT, MECHANICAL, PSIONIC),
        minerals=50,
        vespene=100,
        food=2,
        cargo_size=2,
        build_time_loops=592,
        build_ability_id=921,
        energy=200,
        energy_at_start=50,
        energy_per_s=0.5625,
    ),
    UnitType(
        id=82,
        name="Observer",
        race=common.Protoss,
        life=40,
        shields=30,
        radius=0.5,
        speed_per_s=1.875,
        sight=11,
        attributes=(LIGHT, MECHANICAL),
        minerals=25,
        vespene=75,
        food=1,
        build_time_loops=480,
        build_ability_id=977,
        flies=True,
        cloaked=True,
        detection=11,
    ),
    UnitType(
        id=98,
        name="SpineCrawler",
        race=common.Zerg,
        life=300,
        armor=2,
        radius=1.125,
        sight=11,
        weapon=WeaponType(damage=25, range=7, cooldown_s=1.85, bonus=(ARMORED, 5)),
        attributes=(ARMORED, BIOLOGICAL, STRUCTURE),
        minerals=150,
        build_time_loops=800,
        build_ability_id=1166,
        footprint=(1.0, 1.0),
        life_per_s=0.2734,
    ),
    UnitType(
        id=105,
        name="Zergling",
        race=common.Zerg,
        life=35,
        speed_per_s=2.953125,
        sight=8,
        weapon=WeaponType(damage=5, range=0.1, cooldown_s=0.696),
        attributes=(LIGHT, BIOLOGICAL),
        minerals=25,
        food=0.5,
        cargo_size=1,
        build_time_loops=384,
        build_ability_id=1343,
    ),
    UnitType(
        id=107,
        name="Hydralisk",
        race=common.Zerg,
        life=90,
        radius=0.625,
        speed_per_s=2.25,
        sight=9,
        weapon=WeaponType(damage=12, range=5, cooldown_s=0.824951172, targets=data_pb.Weapon.Any),
        attributes=(LIGHT, BIOLOGICAL),
        minerals=100,
        vespene=50,
        food=2,
        cargo_size=2,
        build_time_loops=528,
        build_ability_id=1345,
        life_per_s=0.2734,
    ),
    UnitType(
        id=110,
        name="Roach",
        race=common.Zerg,
        life=145,
        armor=1,
        radius=0.625,
        speed_per_s=2.25,
        sight=9,
        weapon=WeaponType(damage=16, range=4, cooldown_s=2.0),
        attributes=(ARMORED, BIOLOGICAL),
        minerals=75,
        vespene=25,
        food=2,
        cargo_size=2,
        build_time_loops=432,
        build_ability_id=1351,
    ),
    UnitType(
        id=141,
        name="Archon",
        race=common.Protoss,
        life=10,
        shields=350,
        radius=1.0,
        speed_per_s=2.8125,
        sight=9,
        weapon=WeaponType(
            damage=25,
            range=3,
            cooldown_s=1.75390625,
            targets=data_pb.Weapon.Any,
            bonus=(BIOLOGICAL, 10),
        ),
        attributes=(PSIONIC, MASSIVE),
        minerals=175,
        vespene=275,
        food=4,
        cargo_size=4,
    ),
    SCV,
    COMMAND_CENTER,
    UnitType(
        id=19,
        name="SupplyDepot",
        race=common.Terran,
        life=400,
        armor=1,
        radius=1.25,
        sight=9,
        attributes=(ARMORED, MECHANICAL, STRUCTURE),
        minerals=100,
        food_provided=8,
        build_time_loops=480,
        build_ability_id=319,
        footprint=(1.0, 1.0),
    ),
    UnitType(
        id=47,
        name="SupplyDepotLowered",
        race=common.Terran,
        life=400,
        armor=1,
        radius=1.25,
        sight=9,
        attributes=(ARMORED, MECHANICAL, STRUCTURE),
        minerals=100,
        food_provided=8,
        build_time_loops=20.80078125,
        build_ability_id=556,
        footprint=(1.0, 1.0),
        tech_alias_id=19,
    ),
    UnitType(
        id=20,
        name="Refinery",
        race=common.Terran,
        life=500,
        armor=1,
        radius=1.6875,
        sight=9,
        attributes=(ARMORED, MECHANICAL, STRUCTURE),
        minerals=75,
        build_time_loops=480,
        build_ability_id=320,
        has_vespene=True,
        footprint=(1.5, 1.5),
    ),
    UnitType(
        id=21,
        name="Barracks",
        race=common.Terran,
        life=1000,
        armor=1,
        radius=1.8125,
        sight=9,
        attributes=(ARMORED, MECHANICAL, STRUCTURE),
        minerals=150,
        build_time_loops=1040,
        build_ability_id=321,
        footprint=(1.5, 1.5),
        tech_requirement_id=19,
    ),
    UnitType(
        id=341,
        name="MineralField",
        armor=10,
        radius=1.125,
        attributes=(STRUCTURE,),
        has_minerals=True,
        footprint=(1.0, 0.5),
    ),
    UnitType(
        id=342,
        name="VespeneGeyser",
        armor=10,
        radius=1.5,
        attributes=(STRUCTURE,),
        has_vespene=True,
        footprint=(1.5, 1.5),
    ),
    UnitType(id=317, name="Beacon_Terran", radius=2.5),
    UnitType(id=1680, name="MineralShard", radius=0.125, attributes=(STRUCTURE,)),
)

TYPE_BY_ID = {unit.id: unit for unit in UNIT_TYPES}
TYPE_BY_NAME = {unit.name: unit for unit in UNIT_TYPES}

MIN_HIT = 0.5
"""Minimum damage of a hit, for any armor."""


def hit(weapon: WeaponType, target: UnitType) -> float:
    """Damage of one whole attack of `weapon` on `target`."""
    bonus = weapon.bonus[1] if weapon.bonus and weapon.bonus[0] in target.attributes else 0.0
    return max(MIN_HIT, weapon.damage + bonus - target.armor) * weapon.attacks


class _Hits(dict[tuple[UnitType, UnitType], float]):
    """Each damage is computed when it is asked for the first time."""

    def __missing__(self, pair: tuple[UnitType, UnitType]) -> float:
        attacker, target = pair
        damage = 0.0 if attacker.weapon is None else hit(attacker.weapon, target)
        self[pair] = damage
        return damage


HIT = _Hits()
"""Damage of one whole attack, by attacker and target."""
