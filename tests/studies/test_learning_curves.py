"""`scripts/studies/learning_curves.py` trains, draws, and takes up what it has already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "studies" / "learning_curves.py"


@pytest.mark.standin("random and scripted players are compared by its rules")
def test_one_curve(standin_dir, tmp_path):
    folder = tmp_path / "curves"
    options = ["--task", "MoveToBeacon", "--steps", "4096", "--episodes", "1"]

    def study() -> list[str]:
        """The cells of its table's row."""
        done = subprocess.run(
            [sys.executable, SCRIPT, folder, "--game", standin_dir, *options],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        _, _, row = (line for line in done.stdout.splitlines() if line.startswith("|"))
        return [cell.strip() for cell in row.strip("|").split("|")]

    first = study()
    assert first[:3] == ["MoveToBeacon", "ppo", "4,096"]
    assert float(first[3]) < float(first[5]), "the scripted player is better than the random one"
    assert (folder / "curves.png").stat().st_size > 10_000
    trained = (folder / "MoveToBeacon" / "model.zip").stat().st_mtime_ns
    assert study() == first
    assert (folder / "MoveToBeacon" / "model.zip").stat().st_mtime_ns == trained
