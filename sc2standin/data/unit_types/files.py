"""The unit types of the data files: one file for each race, and one for scenery.

An entry has the fields of `UnitType` that are not the default, with names in place of enum values
and of types. An entry without an id is a body: what the data tables lack of a type that only debug
commands create (`data.derived`).

The numbers are the real game's. The API lacks hit points and radii; these are the unit editor's, if
the file does not say otherwise.
"""

from __future__ import annotations

from pathlib import Path

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.jsonc import Entry, Readers, fields, read
from sc2standin.data.unit_types.kinds import HealType, UnitType, WeaponType

FOLDER = Path(__file__).parent
RACES = {
    "terran": common.Terran,
    "protoss": common.Protoss,
    "zerg": common.Zerg,
    "scenery": common.NoRace,
}
"""The race of the types in each file."""

TYPE_BY_NAME: dict[str, UnitType] = {}
BODIES: dict[str, Entry] = {}
"""Entries of the types that only debug commands create, by their names in the tables."""

_OF_WEAPONS: Readers = {
    "targets": data_pb.Weapon.TargetType.Value,
    "bonus": lambda pair: (data_pb.Attribute.Value(pair[0]), pair[1]),
    "blast": lambda circles: tuple(map(tuple, circles)),
}
READERS: Readers = {
    # null: an ability or another unit fires the weapon of the tables.
    "weapon": lambda entry: entry and WeaponType(**fields(entry, _OF_WEAPONS)),
    "heals": lambda entry: HealType(**entry),
    "attributes": lambda names: tuple(map(data_pb.Attribute.Value, names)),
    "footprint": tuple,
    "commands": tuple,
    "made_from": lambda name: TYPE_BY_NAME[name],
}

for _file, _race in RACES.items():
    for _name, _entry in read(FOLDER / f"{_file}.jsonc", READERS):
        if "id" in _entry:
            TYPE_BY_NAME[_name] = UnitType(name=_name, race=_race, **_entry)
        else:
            BODIES[_name] = _entry

UNIT_TYPES = tuple(TYPE_BY_NAME.values())
"""Every unit type that a map can have."""
TYPE_BY_ID = {unit.id: unit for unit in UNIT_TYPES}
