"""`scripts/studies`: `learning_curves.py` draws a folder's runs, `scores.py` prints its table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from sc2pool.cli.training.episodes import EpisodeLog, EpisodeRow
from sc2pool.tasks.minigames.scores import PUBLISHED

LEARNING_CURVES = Path(__file__).parents[2] / "scripts" / "studies" / "learning_curves.py"


def test_it_draws_seven_runs(tmp_path: Path) -> None:
    for task in PUBLISHED:
        run = tmp_path / task
        run.mkdir()
        about = {"options": {"algo": "ppo", "steps": 960}, "game_version": "standin-1"}
        (run / "config.json").write_text(json.dumps(about))
        log = EpisodeLog(run / "episodes.csv")
        for number, fault in ((1, ""), (2, "hung"), (3, "")):
            log.add(EpisodeRow(240 * number, float(number), 240, 1.0, fault))
        log.close()
    done = subprocess.run(
        [sys.executable, LEARNING_CURVES, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    head, _, first, *others = done.stdout.splitlines()
    assert head == "| task | algorithm | env steps | random | last 32 episodes | scripted |"
    assert first == "| MoveToBeacon | ppo | 960 | 0.6 | 2.0 | 25.5 |"
    assert len(others) == 6
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width > picture.height > 500


SCORES = Path(__file__).parents[2] / "scripts" / "studies" / "scores.py"


@pytest.mark.standin("the bounds in its table are checked against its rules")
def test_one_row(standin_dir):
    options = ["--game", standin_dir, "--task", "MoveToBeacon", "--episodes", "1"]
    finished = subprocess.run(
        [sys.executable, SCORES, *options],
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
