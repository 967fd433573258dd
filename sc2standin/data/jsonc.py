"""Reads data files in JSON, in which a line that begins with `//` is a comment.

A file has entries with names, and an entry has fields. The field `like` of an entry names an
earlier entry. The later entry takes the fields that it lacks from the earlier entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Readers = Mapping[str, Callable[[Any], Any]]
"""The functions that convert the JSON values of fields, by the fields' names."""


def read(path: Path, readers: Readers | None = None) -> Iterator[tuple[str, Entry]]:
    """The names and entries of a file, in the file's order."""
    lines = path.read_text().splitlines()
    # Comments become empty lines, so that the line numbers in errors are right.
    text = "\n".join("" if line.startswith("//") else line for line in lines)
    entries: dict[str, Entry] = {}
    for name, entry in json.loads(text).items():
        base = entries[entry.pop("like")] if "like" in entry else {}
        entries[name] = base | fields(entry, readers or {})
        yield name, entries[name]


def fields(entry: Entry, readers: Readers) -> Entry:
    """The fields of an entry. If `readers` has a function for a field, it converts the value."""
    return {name: readers[name](v) if name in readers else v for name, v in entry.items()}
