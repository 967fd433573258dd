"""Writes and reads a run's live files, JSON files by which other processes can watch a pool.

The files are in the run's folder (`sc2pool-run-…`). A reader touches `requested` to request the
other files. At every sample the trainer's watchdog thread writes the statistics to `pool.json`, and
the curves of the run so far to `curve.json`. A few times a second a worker writes the newest
observation of instance 12 to `12/view.json`. The worker writes the map to `12/map.json` each time
the map changes.

Files are written only if a reader has requested them in the last seconds, and never by the step
path. A file is replaced as a whole, so no reader sees an incomplete file. JSON can be read without
running code. The folder and the files are private to the user (0700).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sc2pool.replacing import replacing

POOL_FILE = "pool.json"
CURVE_FILE = "curve.json"
VIEW_FILE = "view.json"
MAP_FILE = "map.json"
_REQUEST_FILE = "requested"

FRESH_FOR_S = 3.0
"""How long after the last request the files are still updated."""


def prepare(run: Path) -> None:
    """Create the file `requested`; if that fails (a full disk), no live files are written."""
    with suppress(OSError):
        request_file = run / _REQUEST_FILE
        request_file.touch(0o600)
        os.utime(request_file, (0, 0))


def request(run: Path) -> None:
    """Request updates of this run's files for the next `FRESH_FOR_S`.

    No file is created, because a new file could keep the trainer from deleting the folder.

    Raises:
        OSError: the run has ended, or belongs to another user.
    """
    os.utime(run / _REQUEST_FILE)


def is_requested(run: Path) -> bool:
    """True if updates of this run's files are requested."""
    try:
        requested_at_s = (run / _REQUEST_FILE).stat().st_mtime
    except OSError:
        return False
    # Use the wall clock, because the system dates files by it.
    return abs(time.time() - requested_at_s) < FRESH_FOR_S


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a live file.

    The file stays unchanged if the disk is full, if the folder was deleted, or if JSON cannot
    represent a value.
    """
    with suppress(OSError, ValueError, TypeError), replacing(path) as unfinished:
        unfinished.write_text(json.dumps(data, separators=(",", ":"), allow_nan=False))


def read(path: Path) -> tuple[dict[str, Any], float] | None:
    """The data of a live file and its age in seconds; None if it cannot be read."""
    try:
        with path.open() as file:
            age_s = time.time() - os.fstat(file.fileno()).st_mtime
            data = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return (data, max(0.0, age_s)) if isinstance(data, dict) else None
