"""The CSV files of a run: rows of one kind, a named tuple each, under the names of its fields."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

from sc2pool.errors import ConfigError
from sc2pool.foreign import read_table, shown
from sc2pool.replacing import replacing

Row = TypeVar("Row", bound=NamedTuple)


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """The rows in a file, without a last line that was cut off; none if there is no file.

    Raises:
        ConfigError: the file cannot be read, or has other rows.
    """
    if not path.exists():
        return []
    types = list(get_type_hints(kind).values())
    return [_row(path, kind, types, cells) for cells in islice(read_table(path), 1, None)]


def _row(path: Path, kind: type[Row], types: Sequence[type], cells: Sequence[str]) -> Row:
    with suppress(ValueError):
        row = kind(*(of(cell) for of, cell in zip(types, cells, strict=True)))
        if all(math.isfinite(one) for one in row if isinstance(one, float)):
            return row
    names = ", ".join(kind._fields)
    raise ConfigError(f"{path}: expected a row of {names}, got {shown(cells)}")


def keep_rows(
    path: Path, kind: type[Row], rows: list[Row], keep: Callable[[Row], bool]
) -> list[Row]:
    """The rows to keep of those in a file, out of which the others are taken at once.

    If the disk refuses that, the next `write_rows` does it.
    """
    kept = list(filter(keep, rows))
    if kept != rows:
        with suppress(OSError):
            write_rows(path, kind, kept)
    return kept


def write_rows(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Write a file with these rows, in one piece.

    Raises:
        OSError: it cannot be written; the file that was there stays.
    """
    with replacing(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(kind._fields)
        writer.writerows(rows)
