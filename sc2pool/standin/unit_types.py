"""Every unit type the stand-in knows, as data, and the same data as arrays.

The numbers are the real game's at normal speed: a second here is 16 game loops, as in the API's
`UnitTypeData`. The API lacks hit points and radii; these are the unit editor's.

The world stores a row number of `UNIT_TYPES` per unit instead of an id, so a whole column can index
the arrays below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

LOOPS_PER_SECOND = 16
"""Game loops per second of unit data (real time has 22.4 loops per second, see `clock`)."""

LIGHT, ARMORED = data_pb.Light, data_pb.Armored
BIOLOGICAL, MECHANICAL, STRUCTURE = data_pb.Biological, data_pb.Mechanical, data_pb.Structure


@dataclass(frozen=True)
class WeaponType:
    """One weapon; `cooldown_s` is the time from one attack to the next."""

    damage: float
    range: float
    cooldown_s: float
    attacks: int = 1
    targets: data_pb.Weapon.TargetType.ValueType = data_pb.Weapon.Ground
    bonus: tuple[data_pb.Attribute.ValueType, float] | None = None


@dataclass(frozen=True)
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
    cargo_size: int = 0
    build_time_loops: float = 0.0
    build_ability_id: int = 0
    has_minerals: bool = False

    @property
    def mobile(self) -> bool:
        """True if the unit can walk."""
        return self.speed_per_s > 0

    @property
    def invulnerable(self) -> bool:
        """True for scenery: it has no life, cannot be attacked and blocks no unit."""
        return self.life == 0


UNIT_TYPES: tuple[UnitType, ...] = (
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
    UnitType(id=317, name="Beacon_Terran", radius=2.5),
    UnitType(id=1680, name="MineralShard", radius=0.125, attributes=(STRUCTURE,)),
)

ROW_BY_ID = {unit.id: row for row, unit in enumerate(UNIT_TYPES)}
ROW_BY_NAME = {unit.name: row for row, unit in enumerate(UNIT_TYPES)}

MIN_HIT = 0.5
"""Minimum damage of a hit, for any armor."""


def _column(name: str) -> NDArray[np.float64]:
    return np.array([getattr(unit, name) for unit in UNIT_TYPES], dtype=np.float64)


def hit(weapon: WeaponType, target: UnitType) -> float:
    """Damage of one whole attack of `weapon` on `target`."""
    bonus = weapon.bonus[1] if weapon.bonus and weapon.bonus[0] in target.attributes else 0.0
    return max(MIN_HIT, weapon.damage + bonus - target.armor) * weapon.attacks


MAX_LIFE = _column("life")
MAX_SHIELDS = _column("shields")
RADIUS = _column("radius")
SIGHT = _column("sight")
STEP = _column("speed_per_s") / LOOPS_PER_SECOND
"""Distance walked in one loop, in cells."""
MOBILE = STEP > 0
VULNERABLE = MAX_LIFE > 0
ARMED = np.array([unit.weapon is not None for unit in UNIT_TYPES])
RANGE = np.array([unit.weapon.range if unit.weapon else 0.0 for unit in UNIT_TYPES])
COOLDOWN_LOOPS = np.array(
    [unit.weapon.cooldown_s * LOOPS_PER_SECOND if unit.weapon else 0.0 for unit in UNIT_TYPES]
)
HIT = np.array(
    [[hit(u.weapon, target) if u.weapon else 0.0 for target in UNIT_TYPES] for u in UNIT_TYPES]
)
"""HIT[attacker row, target row]: damage of one attack."""
