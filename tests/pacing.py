"""How many tests run at a time: more if the cores have time for them.

Tests mostly wait, for games and their clocks. Four at a time fill two slow cores, while two fast
ones would be idle for a third of the run. So the workers of pytest-xdist from the fifth on begin a
file of tests only once the cores are not busy.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

ALWAYS_RUN = 4
BUSY_PERCENT = 85.0
GIVES_WAY_S = 120.0
"""The longest wait for one file: other programs may keep the cores busy for ever."""


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
    """Whether this worker of pytest-xdist ("gw0", "gw1", …) waits for idle cores."""
    return int(worker.removeprefix("gw")) >= ALWAYS_RUN
