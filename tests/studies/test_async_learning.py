"""PPO beside AsyncPPO, in its shortest form: all learners run, both files are written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "studies" / "async_learning.py"


def test_every_learner_is_measured(standin_dir, tmp_path):
    options = ["--quick", "--n", "2", "--game", standin_dir, "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "async_learning.json").read_text())
    assert [run["learner"] for run in result["runs"]] == ["PPO", "AsyncPPO", "AsyncPPO, process"]
    for run in result["runs"]:
        assert run["played_steps"] >= run["steps"] >= result["steps"]
        assert run["episodes"]
    ppo, *others = result["runs"]
    for run, verdict in zip(others, result["verdicts"], strict=True):
        speed = (run["steps"] / run["wall_s"]) / (ppo["steps"] / ppo["wall_s"])
        assert verdict["speed_over_ppo"] == pytest.approx(speed)
        assert f"{verdict['learner']}: return" in done.stdout
    assert (tmp_path / "out" / "async_learning.png").stat().st_size > 10_000
