"""Decides which tests run when, and how many at a time. A test's folder or file decides its tier.

    `./scripts/test`: The fast tier: tests of the parts that a change breaks most often.
    `./scripts/test --all`: The fast tier, and tests that take minutes or need other libraries.
    `./scripts/test --long`: Tests that take an hour; they run by hand and on a schedule.
    `./scripts/test --windows`: Tests for a Windows Python, which run under Wine.

A run of named tests (`pytest tests/ray`) has no tier, and runs the named tests.

Tests mostly wait for games and their clocks. Four tests at a time keep two slow cores busy, but two
fast cores would be idle for a third of the run. So the fifth and all further workers of
pytest-xdist begin a file of tests only when the cores are not busy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

FAST = (
    "unit",
    "game",
    "faults/games",
    "contract/classes",
    "contract/steps",
    "tasks",
    "scripts/test_simulation.py",
    "test_distributions.py",
)
"""The quickest tests are first, to show failures early; `faults`, whose tests wait, is not last."""
SLOW = (
    "ray",
    "realtime",
    "docs",
    "libraries",
    "faults/classes",
    "faults/pools",
    "cli",
    "test_checker.py",
    "contract/reports",
    "faults/endings",
    "examples",
    "matches",
    "standin",
)
"""The longest tests are first, so that no core is idle at the end."""
LONG = (
    "scripts",
    "crashes",
    "peers",
    "contract/classes",
    "contract/steps",
    "ray",
    "faults/classes",
    "libraries/test_notebook.py",
    "examples/test_xjump.py",
)
"""The entries from `ray` on, and `scripts/test_simulation.py`, have longer forms; see LONGER.

The contract plays all tempers of the stand-in.
"""
WINDOWS = (
    "windows",
    "unit/test_processes.py",
    "unit/game",
    "unit/pool",
    "unit/protocol",
    "unit/test_envs.py",
    "unit/tasks",
    "unit/test_render.py",
    "unit/test_replacing.py",
    "game/test_game.py",
    "game/test_launch.py",
    "contract/steps/test_steps.py",
    "faults/games/test_kill_and_stop.py",
    "realtime/test_gate.py",
)
"""Those tests for a Windows Python that find the most errors within some minutes."""
FOLDERS = {"fast": FAST, "all": SLOW + FAST, "long": LONG, "windows": WINDOWS}
"""The folders and files of each tier, in the order in which they run."""
LONGER = "SC2POOL_LONG"
"""The environment variable that asks tests for their longer form; the long tier sets it."""


def is_long() -> bool:
    """True if tests must run in their longer form."""
    return bool(os.environ.get(LONGER))


def tier_of(nodeid: str) -> str:
    """The first tier that runs this test."""
    return next(
        tier
        for tier, folders in FOLDERS.items()
        if any(f"{nodeid}/".startswith((f"tests/{one}/", f"tests/{one}::")) for one in folders)
    )


ALWAYS_RUN = 4
BUSY_PERCENT = 85.0
GIVES_WAY_S = 120.0
"""The longest wait in seconds for one file; other programs may keep the cores busy for ever."""


class GivesWay:
    """Makes a worker wait before each file of tests while the cores are busy."""

    def __init__(self) -> None:
        self._file: Path | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if item.path == self._file:
            return
        self._file = item.path
        until_s = time.monotonic() + GIVES_WAY_S
        while time.monotonic() < until_s and psutil.cpu_percent(interval=1.0) > BUSY_PERCENT:
            pass


def gives_way(worker: str) -> bool:
    """True if this worker of pytest-xdist ("gw0", "gw1", …) waits for idle cores."""
    return int(worker.removeprefix("gw")) >= ALWAYS_RUN
