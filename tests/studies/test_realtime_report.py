"""The report on real time, in its shortest form: that it runs, and what it must show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "studies" / "realtime_report.py"
UPDATE_S = 0.5
"""Of the quick form."""
LOOPS_PER_S = 22.4


def report(out: Path, *arguments: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Its rows by learner, and what it printed."""
    command = [sys.executable, SCRIPT, "--quick", "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((out / "realtime.json").read_text())["rows"]
    return {row["learner"]: row for row in rows}, done.stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The result's folder, its rows, and what was printed."""
    out = tmp_path_factory.mktemp("realtime")
    return out, *report(out)


def test_every_way_to_learn_is_measured(measured):
    out, rows, printed = measured
    assert list(rows) == ["playing only", "plain PPO", "pause gate", "AsyncPPO"]
    assert all(name in printed for name in rows)
    assert (out / "realtime.png").stat().st_size > 10_000
    for name, row in rows.items():
        gaps = row["gap_ms"]
        assert 0 < gaps["p50"] <= gaps["p99"] <= gaps["max"]
        assert row["steps"] >= 12
        assert row["faults"] == {}
        if name != "playing only":
            assert row["updates"] == 2
            assert row["updated_s"] >= 2 * UPDATE_S


def test_in_an_update_plain_ppo_does_not_act(measured):
    _, rows, _ = measured
    plain = rows["plain PPO"]
    # Two updates, but no step follows the second one.
    assert plain["gap_ms"]["max"] >= UPDATE_S * 1000
    assert plain["lost_ticks"] >= 4 * int(UPDATE_S * LOOPS_PER_S / 4)


@pytest.mark.timing
def test_behind_the_gate_no_loop_passes(measured):
    _, rows, _ = measured
    gate = rows["pause gate"]
    assert gate["paused_s"] >= UPDATE_S
    assert gate["passed_paused"] == 0
    assert gate["gap_ms"]["max"] < UPDATE_S * 1000
    assert gate["deaths_unattended"] == 0


def test_with_an_actor_of_its_own_the_game_is_not_left_alone(measured):
    _, rows, _ = measured
    assert rows["AsyncPPO"]["gap_ms"]["max"] < rows["plain PPO"]["gap_ms"]["max"]
    assert rows["AsyncPPO"]["lost_ticks"] < rows["plain PPO"]["lost_ticks"]


def test_a_game_that_catches_up_shows_what_it_has_lost(tmp_path):
    rows, printed = report(tmp_path, "--after-stop", "catch-up", "--learner", "pause gate")
    gate = rows["pause gate"]
    assert gate["passed_paused"] >= UPDATE_S * LOOPS_PER_S - 1
    assert gate["lost_ticks"] > 0
    assert "catch-up" in printed
