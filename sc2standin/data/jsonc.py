"""Reads data files: JSON, in which a line that begins with `//` is a comment.

A file has entries by name, and an entry has fields. The field `like` of an entry names an earlier
entry, from which the later one takes the fields that it lacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Readers = Mapping[str, Callable[[Any], Any]]
"""Functions that convert the JSON values of fields, by the fields' names."""


def read(path: Path, readers: Readers | None = None) -> Iterator[tuple[str, Entry]]:
    """The names and entries of a file, in its order."""
    lines = path.read_text().splitlines()
    # Comments become empty lines, so that the line numbers in errors are right.
    text = "\n".join("" if line.startswith("//") else line for line in lines)
    entries: dict[str, Entry] = {}
    for name, entry in json.loads(text).items():
        base = entries[entry.pop("like")] if "like" in entry else {}
        entries[name] = base | fields(entry, readers or {})
        yield name, entries[name]


def fields(entry: Entry, readers: Readers) -> Entry:
    """The fields of an entry, converted by their readers."""
    return {name: readers[name](v) if name in readers else v for name, v in entry.items()}
