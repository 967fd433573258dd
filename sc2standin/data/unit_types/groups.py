"""The unit types that rules name, and what they are to each other.

Rules they keep: an add-on is of the kind of the structure that it belongs to (`ADD_ONS`), or of the
bare kind if it belongs to none. A structure that has lifted off is the same one, of another type.
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
"""Where an add-on stands, from the middle of its structure."""
ADD_ONS: dict[tuple[UnitType, UnitType], UnitType] = {
    (owner, bare): TYPE_BY_NAME[f"{owner.name}{bare.name}"]
    for owner in (BARRACKS, FACTORY, STARPORT)
    for bare in (TECH_LAB, REACTOR)
}
"""The add-on of a structure, by the structure's type and the bare kind."""
BARE_ADD_ONS = {kind: bare for (_owner, bare), kind in ADD_ONS.items()} | {
    TECH_LAB: TECH_LAB,
    REACTOR: REACTOR,
}
"""The bare kind of each add-on."""


class Mode(NamedTuple):
    """The mode that a unit can change to."""

    ability_id: int
    into: UnitType
    loops: int
    """How long the change takes."""


MODES: dict[str, Mode] = {
    "SiegeTank": Mode(388, TYPE_BY_NAME["SiegeTankSieged"], 68),
    "SiegeTankSieged": Mode(390, TYPE_BY_NAME["SiegeTank"], 61),
    "VikingFighter": Mode(403, TYPE_BY_NAME["VikingAssault"], 41),
    "VikingAssault": Mode(405, TYPE_BY_NAME["VikingFighter"], 41),
    "Hellion": Mode(1998, TYPE_BY_NAME["HellionTank"], 66),
    "HellionTank": Mode(1978, TYPE_BY_NAME["Hellion"], 66),
}
"""By the name of the unit's type: upgrades make variants of it. The game's times have a random part
of up to half a second; these are their middles (`SiegeMode` and the other morphs of its data)."""
