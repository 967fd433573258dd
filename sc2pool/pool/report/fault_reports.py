"""A bundle is a folder with all that is known of one fault, for whoever asks in the morning.

    <bundle_dir>/20260131-235959-env3-instance12-game-exited-x1y2z3/
        fault.json      kind, phase, detail, seed and episode, last actions, state, versions
        game.log        the end of the game's output
        traceback.txt   where the worker was
        last.SC2Replay  where the game still answered

Rules: the folder is bounded, the oldest bundles go first; a bundle that cannot be written (a full
disk) is no second fault.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sc2pool.errors import Fault
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.ipc.messages import Evidence

log = logging.getLogger("sc2pool")

KEPT = 50
"""So many bundles are kept in a folder."""


def default_dir() -> Path:
    """The user's own place for bundles."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sc2pool" / "faults"


def write(directory: Path, seat: Seat, fault: Fault, evidence: Evidence) -> str | None:
    """Write the bundle of a fault; its path, or None where it could not be written."""
    instance = seat.instance
    # The wall clock is right here: this is a name for people, not a deadline.
    when = time.strftime("%Y%m%d-%H%M%S")
    name = f"{when}-{seat.name.replace(' ', '')}-instance{instance.number}-{fault.kind}-"
    path: Path | None = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Another trainer's env 3 may fail in the same second: the end of the name is its own.
        path = Path(tempfile.mkdtemp(prefix=name, dir=directory))
        about = {
            "fault": asdict(fault),
            "seat": seat.name,
            "instance": instance.number,
            "state": str(instance.state),
            "episode": None if instance.episode is None else asdict(instance.episode),
            "rung": instance.rung,
            "game": None if instance.facts is None else asdict(instance.facts),
            "last_actions": [describe(action) for action in instance.last_actions],
        }
        (path / "fault.json").write_text(json.dumps(about, indent=2, default=str) + "\n")
        for file, content in (
            ("game.log", evidence.log_tail.encode()),
            ("traceback.txt", evidence.traceback.encode()),
            ("last.SC2Replay", evidence.replay),
        ):
            if content:
                (path / file).write_bytes(content)
        prune(directory)
    except OSError as error:
        log.warning("no fault bundle in %s: %s", directory, error)
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        return None
    return str(path)


def prune(directory: Path) -> None:
    """Delete the oldest bundles beyond the bound; their names sort by time."""
    bundles = sorted(path for path in directory.iterdir() if (path / "fault.json").exists())
    for path in bundles[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def describe(action: Any) -> Any:
    """An action as JSON can hold it."""
    return action.tolist() if hasattr(action, "tolist") else repr(action)
