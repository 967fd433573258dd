"""The file of win rates."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool.cli.training.self_play.results import ResultLog, ResultRow, read_results
from sc2pool.errors import ConfigError

ROWS = [
    ResultRow(0, "first", 20, 9, 10),
    ResultRow(0, "scripted", 20, 0, 20),
    ResultRow(500, "first", 20, 19, 1),
    ResultRow(500, "scripted", 20, 12, 8),
    ResultRow(900, "first", 100, 100, 0),
    ResultRow(900, "scripted", 100, 40, 60),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "win_rates.csv"
    log = ResultLog(path)
    for steps in (0, 500, 900):
        log.add(*(row for row in ROWS if row.total_steps == steps))
    return path


def test_written_results_are_read(path):
    assert read_results(path) == ROWS
    assert path.read_text().splitlines()[:2] == [
        "total_steps,opponent,games,wins,losses",
        "0,first,20,9,10",
    ]


def test_a_resumed_run_drops_later_results(path):
    log = ResultLog(path, steps_done=600)
    assert log.rows == read_results(path) == ROWS[:4]
    new = ResultRow(700, "first", 20, 20, 0)
    log.add(new)
    assert read_results(path) == [*ROWS[:4], new]


@pytest.mark.parametrize("row", ["0,first,0,0,0", "0,first,9,-1,2"])
def test_results_that_no_match_has(path, row):
    path.write_text(f"total_steps,opponent,games,wins,losses\n{row}\n")
    with pytest.raises(ConfigError, match="expected matches and how many were won, got "):
        read_results(path)


def test_the_newest_of_each_opponent(path):
    latest = ResultLog(path, steps_done=900).latest()
    assert latest == {"first": ROWS[4], "scripted": ROWS[5]}
    assert latest["scripted"].win_rate == 0.4


def test_the_rows_of_the_best_model_stay(path):
    log = ResultLog(path, steps_done=0, best_steps=900)
    assert log.rows == read_results(path) == [*ROWS[:2], *ROWS[4:]]


def test_the_quality_of_a_policy(path):
    log = ResultLog(path, steps_done=900)
    assert log.quality(500) == 0.95 + 0.6
    assert log.quality(700) is None
    assert log.quality(None) is None
    log.add(ResultRow(500, "first", 20, 20, 0), ResultRow(500, "scripted", 20, 20, 0))
    assert log.quality(500) == 2.0


def test_a_row_that_a_full_disk_refuses_comes_later(path, full_disk):
    log = ResultLog(path, steps_done=900)
    lost, next_one = ResultRow(950, "first", 20, 20, 0), ResultRow(980, "first", 20, 20, 0)
    with full_disk(), pytest.raises(OSError, match="large"):
        log.add(lost)
    log.add(next_one)
    assert read_results(path) == [*ROWS, lost, next_one]
