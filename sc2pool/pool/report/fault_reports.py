"""A fault report is a folder with what is known of one fault, for later debugging.

    <fault_report_dir>/20260131-235959-env3-instance12-game-exited-x1y2z3/
        fault.json      kind, phase, detail, seed and episode, last actions, state, versions
        game.log        the end of the game's output
        traceback.txt   where the worker was
        last.SC2Replay  if the game still answered

Rules: the number of reports is bounded, and the oldest are deleted first; if a report cannot be
written (a full disk), the log has a warning and the pool goes on.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sc2pool.errors import Fault
from sc2pool.game.installation import cache_folder
from sc2pool.pool.ipc.messages import Evidence
from sc2pool.tasks.player import Episode, GameFacts

log = logging.getLogger("sc2pool")

KEPT = 50
"""How many reports a folder keeps."""


@dataclass(frozen=True)
class FaultedInstance:
    """The instance that failed.

    Attributes:
        seat: the name of its place in the pool, "env 3" or "spare 8".
        instance: its number.
        state: its state when it failed.
        episode: that it played or prepared; None if there was none.
        reset_kind: how that episode was begun; empty if it was not yet.
        game: None if none was running.
        last_actions: the newest actions it was sent, oldest first.
    """

    seat: str
    instance: int
    state: str
    episode: Episode | None
    reset_kind: str
    game: GameFacts | None
    last_actions: Sequence[Any]


def default_dir() -> Path:
    """The folder for fault reports in the user's cache."""
    return cache_folder() / "faults"


def write(
    directory: Path, fault: Fault, instance: FaultedInstance, evidence: Evidence
) -> str | None:
    """Write a fault report.

    Args:
        directory: the folder of all reports; it is made if need be.
        fault: what was observed.
        instance: where.
        evidence: what the worker has sent about it.

    Returns:
        The report's folder; None if it could not be written.
    """
    # The wall clock is right here: this is a name for people, not a deadline.
    when = time.strftime("%Y%m%d-%H%M%S")
    place = instance.seat.replace(" ", "")
    name = f"{when}-{place}-instance{instance.instance}-{fault.kind}-"
    path: Path | None = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Another trainer's env 3 may fail in the same second: the end of the name is unique.
        path = Path(tempfile.mkdtemp(prefix=name, dir=directory))
        about = {
            "fault": asdict(fault),
            **vars(instance),
            "episode": instance.episode and asdict(instance.episode),
            "game": instance.game and asdict(instance.game),
            "last_actions": [_plain(action) for action in instance.last_actions],
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
        log.warning("no fault report in %s: %s", directory, error)
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        return None
    return str(path)


def prune(directory: Path) -> None:
    """Delete the oldest reports beyond `KEPT`; their names sort by time."""
    reports = sorted(path for path in directory.iterdir() if (path / "fault.json").exists())
    for path in reports[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def _plain(action: Any) -> Any:
    """An action as JSON can hold it."""
    return action.tolist() if hasattr(action, "tolist") else repr(action)
