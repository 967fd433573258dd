"""`scripts/studies/scores.py` prints its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "studies" / "scores.py"


@pytest.mark.standin("the bounds in its table are checked against its rules")
def test_one_row(standin_dir):
    options = ["--game", standin_dir, "--task", "MoveToBeacon", "--episodes", "1"]
    finished = subprocess.run(
        [sys.executable, SCRIPT, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    header, separator, row, _, game = finished.stdout.splitlines()
    assert header.count("|") == separator.count("|") == row.count("|")
    assert row.startswith("| MoveToBeacon |")
    assert row.endswith("| yes (22–34) | yes (≤ 6) |")
    assert game.startswith("Game standin")
