"""The unit types that rules name, and the relations between them.

Rules they keep: the type of an add-on depends on its structure (`ADD_ONS`); an add-on without a
structure has its bare type. A structure that lifts off stays the same unit, with another type.
"""

from __future__ import annotations

from typing import NamedTuple

from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType

SCV, MULE = TYPE_BY_NAME["SCV"], TYPE_BY_NAME["MULE"]
WORKERS = frozenset({SCV, MULE})

COMMAND_CENTER, ORBITAL_COMMAND, PLANETARY_FORTRESS = (
    TYPE_BY_NAME[name] for name in ("CommandCenter", "OrbitalCommand", "PlanetaryFortress")
)
TOWN_HALLS = frozenset({COMMAND_CENTER, ORBITAL_COMMAND, PLANETARY_FORTRESS})

BARRACKS, FACTORY, STARPORT = (TYPE_BY_NAME[name] for name in ("Barracks", "Factory", "Starport"))
WARP_GATE = TYPE_BY_NAME["WarpGate"]
TECH_LAB, REACTOR = TYPE_BY_NAME["TechLab"], TYPE_BY_NAME["Reactor"]
ADD_ON_OFFSET = (2.5, -0.5)
"""The offset of an add-on from the middle of its structure, in cells."""
ADD_ONS: dict[tuple[UnitType, UnitType], UnitType] = {
    (owner, bare): TYPE_BY_NAME[f"{owner.name}{bare.name}"]
    for owner in (BARRACKS, FACTORY, STARPORT)
    for bare in (TECH_LAB, REACTOR)
}
"""The type of an add-on, by its structure's type and its bare type."""
BARE_ADD_ONS = {kind: bare for (_owner, bare), kind in ADD_ONS.items()} | {
    TECH_LAB: TECH_LAB,
    REACTOR: REACTOR,
}
"""The bare type of each add-on."""


class Mode(NamedTuple):
    """A change of mode that a unit can make."""

    ability_id: int
    into: UnitType
    loops: int
    """The duration of the change."""


MODES: dict[str, Mode] = {
    "SiegeTank": Mode(388, TYPE_BY_NAME["SiegeTankSieged"], 68),
    "SiegeTankSieged": Mode(390, TYPE_BY_NAME["SiegeTank"], 61),
    "VikingFighter": Mode(403, TYPE_BY_NAME["VikingAssault"], 41),
    "VikingAssault": Mode(405, TYPE_BY_NAME["VikingFighter"], 41),
    "Hellion": Mode(1998, TYPE_BY_NAME["HellionTank"], 66),
    "HellionTank": Mode(1978, TYPE_BY_NAME["Hellion"], 66),
}
"""The change of each type; by the type's name, because upgrades make variants of a type.

In the game's data (`SiegeMode` and the other morphs) the durations have a random part of up to half
a second; these are their means.
"""
