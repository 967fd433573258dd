"""The unit types of SMAC's scenarios that are not those of a melee game.

SMAC's maps depend on the mod Liberty alone, so their weapons are those of Wings of Liberty. The
enemies have standard ids. The client's units are copies, named `_RL`, with ids of their own, by
whose order SMAC tells them apart; their hit points, speeds and energy are in the maps' unit data.

Each real map has copies of its own; here all maps share one set, but for SMACv2's map, which has
all nine: by SMACv2's rule they are the last nine types of the game, in the order of their names.

Rules it keeps: the copies' ids begin after the last standard one (2056), and copies that occur
together have consecutive ids in the order of the real maps; copies fire and heal only when they are
ordered to. The weapons are from memory and not verified.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.unit_types import (
    ARMORED,
    LIGHT,
    TYPE_BY_ID,
    TYPE_BY_NAME,
    UnitType,
    WeaponType,
)

FIRST_COPY_ID = 2057
LIFE_PER_S = 0.2734
"""Life that comes back to every Zerg unit."""

_MELEE = TYPE_BY_NAME
_COLOSSUS = replace(
    _MELEE["Colossus"],
    name="Colossus_Liberty",
    weapon=WeaponType(damage=15, range=6, cooldown_s=1.65, attacks=2, beam=1.4),
)
_STALKER = replace(
    _MELEE["Stalker"],
    name="Stalker_Liberty",
    weapon=WeaponType(
        damage=10, range=6, cooldown_s=1.44, targets=data_pb.Weapon.Any, bonus=(ARMORED, 4)
    ),
)
_MEDIVAC = replace(_MELEE["Medivac"], name="Medivac_Liberty", speed_per_s=2.75)
_BANELING = replace(
    _MELEE["Baneling"],
    name="Baneling_Liberty",
    weapon=WeaponType(damage=20, range=0.25, cooldown_s=0.833, bonus=(LIGHT, 15), splash=2.2),
    life_per_s=LIFE_PER_S,
)
_ZERGLING = replace(_MELEE["Zergling"], name="Zergling_Liberty", life_per_s=LIFE_PER_S)
_HYDRALISK = replace(_MELEE["Hydralisk"], name="Hydralisk_Liberty", life=80)

LIBERTY: dict[str, UnitType] = {
    "Colossus": _COLOSSUS,
    "Stalker": _STALKER,
    "Zealot": _MELEE["Zealot"],
    "Marauder": _MELEE["Marauder"],
    "Marine": _MELEE["Marine"],
    "Medivac": _MEDIVAC,
    "Baneling": _BANELING,
    "Zergling": _ZERGLING,
    "Hydralisk": _HYDRALISK,
    "SpineCrawler": _MELEE["SpineCrawler"],
}
"""The enemies' types, by their names in the real maps, in the order of the copies' ids."""

COPIES: dict[str, UnitType] = {
    f"{name}_RL": replace(kind, id=FIRST_COPY_ID + i, name=f"{name}_RL", passive=True)
    for i, (name, kind) in enumerate(LIBERTY.items())
    if kind.mobile
}
"""The client's types, by their names in the real maps."""

LAST_COPIES: tuple[UnitType, ...] = tuple(
    replace(kind, id=FIRST_COPY_ID + len(COPIES) + i)
    for i, kind in enumerate(sorted(COPIES.values(), key=attrgetter("name")))
)
"""The client's types on SMACv2's map."""

BY_NAME = TYPE_BY_NAME | {kind.name: kind for kind in (*LIBERTY.values(), *COPIES.values())}
"""All types that a map file can name."""

BY_ID = TYPE_BY_ID | {kind.id: kind for kind in (*LIBERTY.values(), *COPIES.values(), *LAST_COPIES)}
"""All types that a debug command can create on SMAC's and SMACv2's maps."""
