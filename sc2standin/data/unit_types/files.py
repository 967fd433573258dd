"""The unit types of the data files, and names for those types that rules need.

`numbers.jsonc` has facts of the real game, which `scripts/truth.py` writes. The other files have
the fields that no table of the game has. A file for each race and a file for scenery list the types
that maps can have. Types that only debug commands and spells create are in `created.jsonc`. Types
that appear on no map (missiles, bridges, units of campaigns) are left out.

An entry has the fields of `UnitType` that differ from the default. Enum values and types are given
by their names. The fields of an entry's weapon are added to those of the weapon in `numbers.jsonc`.
If an entry's weapon is null, the type has no weapon.

The type of an add-on depends on the structure beside it (`ADD_ONS`). An add-on without a structure
has its bare type. A structure that lifts off stays the same unit, with another type.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.jsonc import Entry, Readers, fields, read
from sc2standin.data.unit_types.kinds import HealType, UnitType, WeaponType

FOLDER = Path(__file__).parent
RACES = ("terran", "protoss", "zerg", "scenery")
"""The files of the types that maps may have."""
NUMBERS = FOLDER / "numbers.jsonc"
LIBERTY = FOLDER / "liberty.jsonc"
"""The file with the numbers of unit types on maps that depend on the mod Liberty alone."""

TYPE_BY_NAME: dict[str, UnitType] = {}

_OF_WEAPONS: Readers = {
    "targets": data_pb.Weapon.TargetType.Value,
    "bonus": lambda pair: (data_pb.Attribute.Value(pair[0]), pair[1]),
    "delay_s": tuple,
    "blast": lambda circles: tuple(map(tuple, circles)),
}
_READERS: Readers = {
    "race": common.Race.Value,
    "weapon": lambda entry: entry and _weapon(entry),
    "heals": lambda entry: HealType(**entry),
    "attributes": lambda names: tuple(map(data_pb.Attribute.Value, names)),
    "footprint": tuple,
    "commands": tuple,
    "refuses": tuple,
    "made_from": lambda name: TYPE_BY_NAME[name],
}


def _weapon(entry: Entry) -> WeaponType:
    other = entry.get("other")
    read_fields = fields(entry, _OF_WEAPONS)
    return WeaponType(**read_fields | {"other": other and _weapon(other)})


def combined(numbers: Entry, does: Entry) -> Entry:
    """Two entries of a type as one entry. Fields in `does` replace those in `numbers`."""
    both = numbers | does
    if numbers.get("weapon") and both.get("weapon"):
        both["weapon"] = numbers["weapon"] | both["weapon"]
    return both


def type_of_entry(name: str, entry: Entry) -> UnitType:
    """The unit type that an entry describes."""
    return UnitType(name=name, **fields(entry, _READERS))


NUMBERS_OF = dict(read(NUMBERS))
"""The entries of `numbers.jsonc`, by the names of the types."""
DOES = {name: entry for file in RACES for name, entry in read(FOLDER / f"{file}.jsonc")}
"""The entries of the files in `RACES`, by the names of the types."""

for _name, _entry in DOES.items():
    TYPE_BY_NAME[_name] = type_of_entry(_name, combined(NUMBERS_OF.get(_name, {}), _entry))
UNIT_TYPES = tuple(TYPE_BY_NAME.values())
"""Every unit type that a map can have."""

_CREATED = dict(read(FOLDER / "created.jsonc"))
for _name, _entry in NUMBERS_OF.items():
    if _name not in DOES:
        TYPE_BY_NAME[_name] = type_of_entry(_name, combined(_entry, _CREATED.get(_name, {})))
TYPE_BY_ID = {unit.id: unit for unit in TYPE_BY_NAME.values()}
"""All unit types, including those that only debug commands and spells create."""


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
"""The offset of an add-on from the centre of its structure, in cells."""
ADD_ONS: dict[tuple[UnitType, UnitType], UnitType] = {
    (owner, bare): TYPE_BY_NAME[f"{owner.name}{bare.name}"]
    for owner in (BARRACKS, FACTORY, STARPORT)
    for bare in (TECH_LAB, REACTOR)
}
"""The type of each add-on, by the type of its structure and by the add-on's bare type."""
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
    """The duration of the change, in loops."""


MODES: dict[str, Mode] = {
    "SiegeTank": Mode(388, TYPE_BY_NAME["SiegeTankSieged"], 68),
    "SiegeTankSieged": Mode(390, TYPE_BY_NAME["SiegeTank"], 61),
    "VikingFighter": Mode(403, TYPE_BY_NAME["VikingAssault"], 41),
    "VikingAssault": Mode(405, TYPE_BY_NAME["VikingFighter"], 41),
    "Hellion": Mode(1998, TYPE_BY_NAME["HellionTank"], 66),
    "HellionTank": Mode(1978, TYPE_BY_NAME["Hellion"], 66),
}
"""Each unit type's change of mode, by the type's name. Upgraded variants of a type share its name.

In the game's data (`SiegeMode` and the other morphs) the durations have a random part of up to half
a second. The stand-in uses the means.
"""
