"""The wall clock may jump, so nothing that waits or measures may look at it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sc2pool
import sc2standin

PACKAGES = [Path(package.__file__).parent for package in (sc2pool, sc2standin)]
BANNED = {
    "time": {"time", "time_ns", "ctime", "localtime", "gmtime", "strftime", "asctime", "mktime"},
    "datetime": {"now", "utcnow", "today", "fromtimestamp"},
    "date": {"today", "fromtimestamp"},
}
ALLOWED = {
    # File of sc2pool, what it uses, and what for.
    ("pool/report/fault_reports.py", "time.strftime"): "a fault report's name, for people",
    ("pool/report/replays.py", "time.strftime"): "a replay's name, for people",
    ("cli/doctor/full.py", "date.today"): "the day of a measurement, for people",
    ("cli/training/options.py", "time.strftime"): "a run folder's name, for people",
    (
        "cli/training/logs.py",
        "time.time",
    ): "when a figure was logged, as TensorBoard shows it",
    ("pool/report/live_files.py", "time.time"): "the age of a file, by the clock of its times",
}
FILES = sorted(file for package in PACKAGES for file in package.rglob("*.py"))


def looks_at_the_wall_clock(source: str) -> set[str]:
    """What a file uses of the wall clock, as `module.function`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if node.attr in BANNED.get(name, ()):
                found.add(f"{name}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module in BANNED:
            found |= {
                f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name in BANNED[node.module]
            }
    return found


def inside(file: Path) -> str:
    """The path of a file in sc2pool; one of the stand-in's begins with its name."""
    return file.relative_to(PACKAGES[0].parent).as_posix().removeprefix("sc2pool/")


def test_only_what_is_allowed_reads_the_wall_clock():
    """And every exception is still needed."""
    used = {
        (inside(file), name) for file in FILES for name in looks_at_the_wall_clock(file.read_text())
    }
    assert used == set(ALLOWED)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\nend = time.time() + 5", {"time.time"}),
        ("from time import time, monotonic", {"time.time"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.now"}),
        ("from datetime import date\ndate.today()", {"date.today"}),
        ("import time\ntime.monotonic(), time.perf_counter(), time.sleep(1)", set()),
    ],
)
def test_the_lint_itself(source, found):
    assert looks_at_the_wall_clock(source) == found
