"""Helpers for the programs of this folder, which kill a game and report to the test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil

from sc2pool.pool.pool import Pool


def games() -> list[psutil.Process]:
    """The game processes of this program's pools."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "-dataDir" in child.cmdline()]


def kill_a_game() -> None:
    """Kill a game with SIGKILL, and wait until it is dead."""
    game = games()[0]
    game.kill()
    game.wait()


def write_report(pool: Pool, **counted: Any) -> None:
    """Write the counts of the library and of the pool. Call this after the pool is closed."""
    stats = pool.stats()
    report = {"pool": {"steps": stats.env_steps, "faults": stats.faults}, **counted}
    Path(sys.argv[1]).write_text(json.dumps({**report, "games left": len(games())}, default=int))
