"""Writes or checks the stand-in's data tables.

Usage:
    python scripts/data_tables.py RECORDED.data.pb.xz              # Writes the tables.
    python scripts/data_tables.py --check RECORDED.data.pb.xz …    # Compares with the tables.

RECORDED is a file with a serialized `ResponseData` of the real game with all five tables. The file
can be compressed with xz. The written file holds the facts by column (ids, names, costs, times,
flags), in the format of `sc2standin/data/tables.py`. A check reports every row that differs.
"""

from __future__ import annotations

import argparse
import json
import lzma
import struct
import sys
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from google.protobuf.message import Message  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data import tables

Columns = dict[str, list[Any]]
XZ_MAGIC = b"\xfd7zXZ"


def read(path: Path) -> sc_pb.ResponseData:
    """The recorded message."""
    content = path.read_bytes()
    if content.startswith(XZ_MAGIC):
        content = lzma.decompress(content)
    data: sc_pb.ResponseData = sc_pb.ResponseData.FromString(content)
    return data


def as_columns(rows: Iterable[Message]) -> Columns:
    """A column for each field, by the field's name; None stands for a row without the field."""
    facts = [as_facts(row) for row in rows]
    names = {field.name: None for row in facts for field in row}
    by_name = [{field.name: value for field, value in row.items()} for row in facts]
    return {name: [row.get(name) for row in by_name] for name in names}


def as_facts(row: Message) -> dict[Any, Any]:
    """The fields that are set in a row, as a dict from descriptors to values for JSON."""
    return {field: as_json(field, value) for field, value in row.ListFields()}


def as_json(field: Any, value: Any) -> Any:
    """The value of one field, for JSON."""
    if field.message_type is not None:
        return [{inner.name: fact for inner, fact in as_facts(part).items()} for part in value]
    if field.is_repeated:
        return list(value)
    if field.type == field.TYPE_FLOAT:
        return shortest(value)
    return int(value) if field.type == field.TYPE_BOOL else value


def shortest(value: float) -> float:
    """The shortest decimal number that is equal to this value when stored as a 32-bit float."""
    if value == int(value):
        return int(value)
    single = struct.pack("f", value)
    digits = (round(value, places) for places in range(1, 12))
    return next((short for short in digits if struct.pack("f", short) == single), value)


def write(data: sc_pb.ResponseData) -> int:
    """Write the tables; returns the size of the file in bytes."""
    columns = {name: as_columns(getattr(data, name)) for name in tables.TABLES}
    content = json.dumps(columns, separators=(",", ":"), ensure_ascii=False).encode()
    return tables.FILE.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def differences(data: sc_pb.ResponseData) -> list[str]:
    """The differences between a recorded message and the written tables, one line per row."""
    ours, found = tables.read(), []
    for name in tables.TABLES:
        pairs = list(zip_longest(getattr(ours, name), getattr(data, name)))
        found += [
            f"{name}: {mine} differs from the recorded {row}" for mine, row in pairs if mine != row
        ]
    return [line.replace("\n", " ") for line in found]


def main() -> int:
    """Write the tables, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("recorded", type=Path, nargs="+")
    options = parser.parse_args()
    if not options.check:
        if len(options.recorded) > 1:
            parser.error("the tables are written from one file")
        print(f"{tables.FILE}: {write(read(options.recorded[0])):,} bytes")
    found = [line for path in options.recorded for line in differences(read(path))]
    print("\n".join(found) or "the tables equal the recorded ones")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
