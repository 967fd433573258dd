"""Every unit type the stand-in knows, as data.

    kinds        what a type is
    terran       the Terran units
    modes        their second modes: sieged, landed, hellbats
    structures   the Terran structures, lifted off or not, and add-ons
    others       Protoss, Zerg and scenery

The numbers are the real game's. The API lacks hit points and radii; these are the unit editor's, if
the file does not say otherwise.
"""

from __future__ import annotations

from sc2standin.data.unit_types.kinds import (
    ARMORED,
    BIOLOGICAL,
    HIT,
    LIGHT,
    MASSIVE,
    MECHANICAL,
    MIN_HIT,
    PSIONIC,
    STRUCTURE,
    HealType,
    UnitType,
    WeaponType,
    hit,
)
from sc2standin.data.unit_types.modes import MODES, TERRAN_MODES
from sc2standin.data.unit_types.others import OTHERS
from sc2standin.data.unit_types.structures import (
    ADD_ON_OFFSET,
    ADD_ONS,
    BARE_ADD_ONS,
    BARRACKS,
    COMMAND_CENTER,
    ORBITAL_COMMAND,
    PLANETARY_FORTRESS,
    REACTOR,
    TECH_LAB,
    TERRAN_STRUCTURES,
    TOWN_HALLS,
)
from sc2standin.data.unit_types.terran import MULE, SCV, TERRAN_UNITS, WORKERS

__all__ = [
    "ADD_ONS",
    "ADD_ON_OFFSET",
    "ARMORED",
    "BARE_ADD_ONS",
    "BARRACKS",
    "BIOLOGICAL",
    "COMMAND_CENTER",
    "HIT",
    "LIGHT",
    "MASSIVE",
    "MECHANICAL",
    "MIN_HIT",
    "MODES",
    "MULE",
    "ORBITAL_COMMAND",
    "PLANETARY_FORTRESS",
    "PSIONIC",
    "REACTOR",
    "SCV",
    "STRUCTURE",
    "TECH_LAB",
    "TOWN_HALLS",
    "TYPE_BY_ID",
    "TYPE_BY_NAME",
    "UNIT_TYPES",
    "WORKERS",
    "HealType",
    "UnitType",
    "WeaponType",
    "hit",
]

UNIT_TYPES: tuple[UnitType, ...] = (*(*TERRAN_UNITS, *TERRAN_MODES, *TERRAN_STRUCTURES, *OTHERS),)
TYPE_BY_ID = {unit.id: unit for unit in UNIT_TYPES}
TYPE_BY_NAME = {unit.name: unit for unit in UNIT_TYPES}
