"""The game's data tables: every ability, unit type, upgrade, buff and effect.

Ids, names, costs, times and flags are those of the real game's patch 5.0.3. The stand-in reports
the build of this patch (`version`), because ids differ between patches. Most entries of the tables
do not exist in the simulation.

`tables.json.xz` stores each table as columns. A column is the list of one field's values in all
rows. If a row lacks the field, its value is null. `scripts/data_tables.py` writes the file from a
recorded message of the game. A process reads the file at the first request that needs it. Every
unit type of the simulation is marked as available.
"""

from __future__ import annotations

import json
import lzma
from functools import lru_cache
from pathlib import Path
from typing import Any

from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.unit_types.files import UNIT_TYPES
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.unit_types.liberty import COPIES, LAST_COPIES

FILE = Path(__file__).with_name("tables.json.xz")
TABLES = ("abilities", "units", "upgrades", "buffs", "effects")
"""The names of the tables, which are fields of `ResponseData`."""


@lru_cache(maxsize=1)
def tables() -> dict[str, bytes]:
    """Each table by its name, as a serialized `ResponseData` that has only this table."""
    data = read()
    units = {row.unit_id: row for row in data.units}
    for kind in (*UNIT_TYPES, *COPIES.values(), *LAST_COPIES):
        if kind.id not in units or not units[kind.id].available:
            _fill(units.get(kind.id) or data.units.add(), kind)
    parts = {name: sc_pb.ResponseData(**{name: getattr(data, name)}) for name in TABLES}
    return {name: bytes(part.SerializeToString(deterministic=True)) for name, part in parts.items()}


@lru_cache(maxsize=1)
def kept() -> sc_pb.ResponseData:
    """The tables of the file, for look-ups; read once. A caller must not change the tables."""
    return read()


def read() -> sc_pb.ResponseData:
    """The tables of the file."""
    columns = json.loads(lzma.decompress(FILE.read_bytes()))
    rows: dict[str, Any] = {name: _rows(columns[name]) for name in TABLES}
    return sc_pb.ResponseData(**rows)


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in next(iter(columns.values()))]
    for field, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                row[field] = value
    return rows


def _fill(row: data_pb.UnitTypeData, kind: UnitType) -> None:
    """Fill the row of a unit type that is missing in the recorded tables, such as scenery."""
    row.unit_id = kind.id
    row.name = kind.name
    row.available = True
    row.race = kind.race
    row.attributes.extend(kind.attributes)
    row.movement_speed = kind.speed_per_s
    row.armor = kind.armor
    row.sight_range = kind.sight
    row.mineral_cost, row.vespene_cost = kind.minerals, kind.vespene
    row.food_provided = kind.food_provided
    row.has_minerals = kind.has_minerals
