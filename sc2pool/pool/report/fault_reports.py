"""Writes fault reports: folders with the evidence of one fault, for later debugging.

The folders are in `PoolConfig.fault_report_dir`. A folder's name has the time, env, instance and
kind of the fault, for example `20260131-235959-env3-instance12-game-exited-x1y2z3`. The file
`fault.json` has the fault's kind, phase and detail, the seed and episode, the last actions, the
state and the versions. `game.log` is the end of the game's output, and `traceback.txt` shows where
the worker was. If the game still answered, there is also `last.SC2Replay`.

The number of reports is limited, and the oldest reports are deleted first. Writing a report never
raises an error. Values that JSON cannot represent are written as text. If a file cannot be written
(a full disk), it is left out and the log has a warning. Without `fault.json` no report is kept.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sc2pool.errors import Fault
from sc2pool.game.program.installation import cache_folder
from sc2pool.pool.messages import Evidence
from sc2pool.replacing import new_folder
from sc2pool.tasks.player import Episode, GameFacts

log = logging.getLogger("sc2pool")

KEPT = 50
"""How many reports a folder keeps."""
_DEPTH = 8
"""Nested containers are written to this depth, because a container may contain itself."""
_ELEMENTS = 1000
"""An array with more elements than this is written in an abbreviated form."""


@dataclass(frozen=True)
class FaultedInstance:
    """A failed instance, with its state at the failure; `last_actions` has the oldest action first.

    `episode` is the episode that the instance played or prepared. `reset_kind` is empty if no
    episode had begun.
    """

    seat: str
    instance: int
    state: str
    episode: Episode | None
    reset_kind: str
    games: Sequence[GameFacts]
    last_actions: Sequence[Any]


def default_dir() -> Path:
    """The folder for fault reports in the user's cache."""
    return cache_folder() / "faults"


def write(
    directory: Path, fault: Fault, instance: FaultedInstance, evidence: Evidence
) -> str | None:
    """Write a fault report; return its folder, or None if it could not be written."""
    # Use the wall clock (which no deadline may use), because people read the name.
    when = time.strftime("%Y%m%d-%H%M%S")
    place = instance.seat.replace(" ", "")
    name = f"{when}-{place}-instance{instance.instance}-{fault.kind}-"
    path: Path | None = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        prune(directory, KEPT - 1)
        # `new_folder` adds a unique end: another trainer's env 3 may fail in the same second.
        path = new_folder(directory, name)
        about = {"fault": vars(fault), **vars(instance)}
        (path / "fault.json").write_text(json.dumps(_as_json(about), indent=2) + "\n")
    except Exception as error:  # a `repr` of the user's values may raise anything
        # Log only text: the frames of an error object would keep the instance alive.
        log.warning("no fault report in %s: %s", directory, str(error))
        if path is not None:
            with suppress(OSError):  # `rmtree` is not used, because it needs free descriptors
                (path / "fault.json").unlink(missing_ok=True)
                path.rmdir()
        return None
    for file, content in (
        ("traceback.txt", _as_bytes(evidence.traceback)),
        ("game.log", _as_bytes(evidence.log_tail)),
        ("last.SC2Replay", evidence.replay),
    ):
        try:
            if content:
                (path / file).write_bytes(content)
        except OSError as error:
            log.warning("the fault report %s has no %s: %s", path, file, str(error))
            with suppress(OSError):
                (path / file).unlink(missing_ok=True)
    return str(path)


def prune(directory: Path, kept: int) -> None:
    """Delete all but the `kept` newest reports; their names sort in the order of time."""
    reports = sorted(path for path in directory.iterdir() if (path / "fault.json").exists())
    for path in reports[: max(0, len(reports) - kept)]:
        shutil.rmtree(path, ignore_errors=True)


def _as_json(value: Any, depth: int = _DEPTH) -> Any:
    """The value for JSON; values that JSON cannot represent become their `repr`."""
    try:
        return _plain(value, depth)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__} when it was to be shown>"


def _plain(value: Any, depth: int) -> Any:
    is_finite = isinstance(value, float) and math.isfinite(value)
    if is_finite or value is None or isinstance(value, bool | int | str):
        return value
    if depth > 0 and isinstance(value, np.ndarray | np.generic) and value.size <= _ELEMENTS:
        return _as_json(value.tolist(), depth - 1)
    if depth > 0 and isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else repr(key): _as_json(one, depth - 1)
            for key, one in value.items()
        }
    if depth > 0 and isinstance(value, list | tuple):
        return [_as_json(one, depth - 1) for one in value]
    if isinstance(value, Episode | GameFacts):
        return _as_json(vars(value), depth)
    return repr(value)


def _as_bytes(text: str) -> bytes:
    """The text as UTF-8, with escapes for lone surrogates, which `os.fsdecode` may make."""
    return text.encode(errors="backslashreplace")
