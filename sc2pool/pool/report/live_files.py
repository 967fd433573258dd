"""The window of a run: what a pool shows to whoever looks in from another process.

    sc2pool-run-x1y2z3/
        asked           touched by who looks; only while it is fresh is the rest kept up to date
        pool.json       counters and instances, by the trainer's watchdog thread at every look
        12/view.json    the newest observation of instance 12, by its worker, a few times a second
        12/map.json     the map that is played there, when it has changed

Rules: with nobody looking nothing is written, and the step path knows nothing of all this; a file
is replaced in one piece, so nobody reads half of one; it is JSON, so reading runs no code; the
folder is private to the user (0700), and so is all that lies in it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

POOL_FILE = "pool.json"
VIEW_FILE = "view.json"
MAP_FILE = "map.json"
_ASKED_FILE = "asked"

ASKED_FOR_S = 3.0
"""So long after the last look the files are kept up to date; who looks asks more often."""


def prepare(run: Path) -> None:
    """Make it possible to ask; a full disk only means that nobody can."""
    with suppress(OSError):
        asked = run / _ASKED_FILE
        asked.touch(0o600)
        os.utime(asked, (0, 0))


def ask(run: Path) -> None:
    """Have the files of this run kept up to date for the next `ASKED_FOR_S`.

    It makes no file: one that appears while the trainer deletes the folder would keep the folder.

    Raises:
        OSError: the run is over, or another user's.
    """
    os.utime(run / _ASKED_FILE)


def is_asked(run: Path) -> bool:
    """Whether someone looks at this run."""
    try:
        asked_at_s = (run / _ASKED_FILE).stat().st_mtime
    except OSError:
        return False
    # The wall clock is right here: it is what files have their times from.
    return abs(time.time() - asked_at_s) < ASKED_FOR_S


def show(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a file of the window.

    A full disk, a folder that is gone, or a figure that JSON cannot hold leaves it as it was.
    """
    unfinished = path.with_name(path.name + ".new")
    with suppress(OSError, ValueError):
        unfinished.write_text(json.dumps(data, separators=(",", ":"), allow_nan=False))
        unfinished.replace(path)


def see(path: Path) -> tuple[dict[str, Any], float] | None:
    """What a file of the window shows, and how old that is in seconds; None if there is none."""
    try:
        with path.open() as file:
            age_s = time.time() - os.fstat(file.fileno()).st_mtime
            data = json.load(file)
    except (OSError, ValueError):
        return None
    return (data, max(0.0, age_s)) if isinstance(data, dict) else None
