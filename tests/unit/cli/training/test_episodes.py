"""The file of episodes: whole whenever the program ends, continued by a resumed run."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from sc2pool.cli.training.episodes import (
    WINDOW,
    EpisodeLog,
    EpisodeRow,
    read_episodes,
    read_rows,
    write_rows,
)
from sc2pool.errors import ConfigError

FIRST = EpisodeRow(total_steps=240, episode_return=1.0, length=240, wall_time_s=0.5)
SECOND = EpisodeRow(total_steps=480, episode_return=2.0, length=240, wall_time_s=1.0)
CUT_SHORT = EpisodeRow(500, 0.0, 20, 1.1, fault="game-exited")


def test_every_episode_is_in_the_file_at_once(tmp_path):
    log = EpisodeLog(tmp_path / "episodes.csv")
    log.add(FIRST)
    log.add(CUT_SHORT)
    assert read_episodes(tmp_path / "episodes.csv") == [FIRST, CUT_SHORT]
    assert log.wall_time_s == 1.1
    log.end(2.5)
    assert log.wall_time_s == 2.5, "the training went on after its last episode"
    log.close()


def test_a_later_log_goes_on_where_the_model_was_saved(tmp_path):
    path = tmp_path / "episodes.csv"
    log = EpisodeLog(path)
    log.add(FIRST)
    log.add(SECOND)
    log.close()

    log = EpisodeLog(path, steps_done=300)
    assert log.wall_time_s == FIRST.wall_time_s
    log.add(CUT_SHORT)
    log.close()
    assert read_episodes(path) == [FIRST, CUT_SHORT]


def test_the_mean_is_over_the_latest_whole_episodes(tmp_path):
    log = EpisodeLog(tmp_path / "episodes.csv")
    assert math.isnan(log.mean_return())
    log.add(EpisodeRow(1, 1000.0, 1, 0.0))
    for _ in range(WINDOW):
        log.add(SECOND)
    log.add(CUT_SHORT)
    assert log.mean_return() == SECOND.episode_return
    assert log.faults == 1
    log.close()


class Record(NamedTuple):
    steps: int
    mean: float
    name: str
    games: int


RECORDS = [Record(64, 1.5, "first, of two", 2), Record(128, -1.0, "", 10)]


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "records.csv"
    assert read_rows(path, Record) == []
    write_rows(path, Record, RECORDS)
    assert read_rows(path, Record) == RECORDS
    write_rows(path, Record, RECORDS[:1])
    assert read_rows(path, Record) == RECORDS[:1]


@pytest.mark.parametrize(
    "row",
    ["64,1.5,a", "64,1.5,a,2,3", "x,1.5,a,2", "1.5,1.5,a,2", "64,nan,a,2", "64,1e999,a,2", ""],
)
def test_a_row_of_something_else(tmp_path, row):
    path = tmp_path / "records.csv"
    path.write_text(f"steps,mean,name,games\n{row}\n")
    with pytest.raises(ConfigError, match=r"records\.csv: expected a row of steps, mean, name, g"):
        read_rows(path, Record)


def test_a_last_line_that_was_cut_off_anywhere_is_left_out(tmp_path):
    path = tmp_path / "records.csv"
    write_rows(path, Record, RECORDS)
    whole = path.read_bytes()
    begin = whole.rindex(b"128")
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        assert read_rows(path, Record) == RECORDS[:1], whole[begin:end]
