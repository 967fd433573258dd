"""All unit types of the stand-in, as data.

    kinds    the fields of a type
    files    the types, read from the data files in this folder: their numbers and abilities; and
             the types that rules name: workers, town halls, add-ons, modes
    liberty  the types of SMAC's scenarios

The numbers are written from the game's own data; the abilities of the types are written by hand.
"""

from __future__ import annotations

from sc2standin.data.unit_types.files import (
    ADD_ON_OFFSET,
    ADD_ONS,
    BARE_ADD_ONS,
    BARRACKS,
    COMMAND_CENTER,
    MODES,
    MULE,
    ORBITAL_COMMAND,
    PLANETARY_FORTRESS,
    REACTOR,
    SCV,
    TECH_LAB,
    TOWN_HALLS,
    TYPE_BY_ID,
    TYPE_BY_NAME,
    UNIT_TYPES,
    WARP_GATE,
    WORKERS,
)
from sc2standin.data.unit_types.kinds import (
    BIOLOGICAL,
    MECHANICAL,
    MIN_HIT,
    STRUCTURE,
    UnitType,
    WeaponType,
)

__all__ = [
    "ADD_ONS",
    "ADD_ON_OFFSET",
    "BARE_ADD_ONS",
    "BARRACKS",
    "BIOLOGICAL",
    "COMMAND_CENTER",
    "MECHANICAL",
    "MIN_HIT",
    "MODES",
    "MULE",
    "ORBITAL_COMMAND",
    "PLANETARY_FORTRESS",
    "REACTOR",
    "SCV",
    "STRUCTURE",
    "TECH_LAB",
    "TOWN_HALLS",
    "TYPE_BY_ID",
    "TYPE_BY_NAME",
    "UNIT_TYPES",
    "WARP_GATE",
    "WORKERS",
    "UnitType",
    "WeaponType",
]
