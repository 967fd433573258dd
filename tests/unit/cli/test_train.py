"""Tests that a run is saved while it trains, and that its file of episodes stays readable."""

from __future__ import annotations

import math
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from sc2pool.cli.training.progress import ProgressTable, open_logger
from sc2pool.cli.training.run_folder import (
    WINDOW,
    EpisodeLog,
    EpisodeRow,
    read_rows,
    write_rows,
)
from sc2pool.cli.training.train import Saver
from sc2pool.errors import ConfigError

# ---- saves ---------------------------------------------------------------------------------------


@pytest.fixture
def model() -> PPO:
    return PPO("MlpPolicy", DummyVecEnv([IdentityEnv]), n_steps=8, batch_size=8, device="cpu")


def test_a_save_that_fails_is_said_and_the_next_one_works(model, tmp_path, full_disk, capfd):
    drawn: list[int] = []
    saver = Saver(model, tmp_path, lambda: drawn.append(model.num_timesteps))
    with full_disk():
        saver.save()
        problem = saver.problem
    assert problem.startswith(f"cannot save to {tmp_path}: ")
    assert saver.last_good() == "no model is saved"
    assert list(tmp_path.iterdir()) == []
    saver.save()
    assert (saver.problem, drawn) == (None, [0])
    good = (tmp_path / "model.zip").read_bytes()

    model.num_timesteps = 9
    with full_disk():
        saver.save()
    assert saver.problem
    assert saver.last_good() == f"the last good model is {tmp_path / 'model.zip'}"
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]
    assert (tmp_path / "model.zip").read_bytes() == good
    del capfd  # the printed line is not checked: a full disk may lose it


def test_a_folder_that_is_gone_is_said(model, tmp_path, capsys):
    saver = Saver(model, tmp_path / "gone" / "further", lambda: None)
    (tmp_path / "gone").touch()
    saver.save()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"cannot save to {tmp_path}/gone/further: ")
    assert line.endswith("; no model is saved")


def test_figures_that_cannot_be_logged_are_lost(tmp_path, full_disk):
    path = tmp_path / "progress.csv"
    log = Logger(str(tmp_path), [ProgressTable(path)])
    for number in range(3):
        log.record("number", number)
        if number == 1:
            with full_disk():
                log.dump(number)
        else:
            log.dump(number)
    log.close()
    assert path.read_text() == "number\n0\n2\n"


def test_a_table_of_figures_is_whole_at_each_instant(tmp_path, full_disk):
    """The table keeps its rows, although SB3 would empty it for a resumed run or a new column."""
    path = tmp_path / "progress.csv"
    table = ProgressTable(path)
    table.write({"time/total_timesteps": 64, "text": 'a, "b"'}, {})
    table.close()
    with path.open("a") as file:
        file.write("12")  # the program was killed while it wrote
    before = 'time/total_timesteps,text\n64,"a, ""b"""\n'
    resumed = ProgressTable(path, steps_done=64)
    assert path.read_text() == before
    with full_disk():
        resumed.write({"new": 1.5}, {})
    assert path.read_text() == before
    resumed.write({"time/total_timesteps": 128, "new": 1.5}, {})
    assert path.read_text() == ('time/total_timesteps,text,new\n64,"a, ""b""",\n128,,1.5\n')
    resumed.close()
    assert [one.name for one in tmp_path.iterdir()] == ["progress.csv"]


def test_figures_of_all_parts_reach_tensorboard_whatever_the_clock_says(tmp_path, monkeypatch):
    """The parts of a run reach TensorBoard in order; it reads the parts by their names."""
    for part, clock_s in enumerate([1_700_000_000.0, 1_600_000_000.0, 1_700_000_000.0, 5.0]):
        monkeypatch.setattr(time, "time", lambda now_s=clock_s: now_s)
        log = open_logger(tmp_path, [], 10 * part)
        for step in range(10 * part + 1, 10 * part + 11):
            log.record("number", step)
            log.dump(step)
        log.close()
    assert logged(tmp_path)["number"] == [(step, step) for step in range(1, 41)]
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("number")
    assert [one.wall_time for one in events] == sorted(one.wall_time for one in events)


@pytest.mark.parametrize("found", ["a record of 2**63 bytes", "a time without an end", "a pipe"])
def test_a_damaged_file_of_an_earlier_part_stops_no_training(tmp_path, found):
    """An earlier part whose times cannot be read counts as a part without times."""
    earlier = tmp_path / "events.out.tfevents.0000000001.000000.1"
    if found == "a pipe":
        os.mkfifo(earlier)
    elif found == "a time without an end":
        with earlier.open("wb") as file:
            RecordWriter(file).write(Event(wall_time=math.inf).SerializeToString())
    else:
        earlier.write_bytes((2**63).to_bytes(8, "little") + bytes(100))
    open_logger(tmp_path, [], steps_done=1).close()
    names = [one.name for one in tmp_path.glob("events.*")]
    assert len(names) == 2
    assert all(re.fullmatch(r"events\.out\.tfevents\.\d{10}\.\d{6}\.\d+", one) for one in names)


def test_figures_reach_tensorboard_once_the_disk_has_room_again(tmp_path, full_disk, capfd):
    log = open_logger(tmp_path, [])

    def dump(number: int) -> None:
        log.record("number", number)
        log.record("half", np.float32(number / 2))
        log.record("words", "of no number")
        log.dump(number)

    dump(0)
    with full_disk():
        dump(1)
    dump(2)
    with full_disk():
        dump(3)
        log.close()
    assert logged(tmp_path) == {
        "number": [(0, 0), (1, 1), (2, 2)],
        "half": [(0, 0), (1, 0.5), (2, 1)],
    }
    assert capfd.readouterr() == ("", "")


def test_a_resumed_training_drops_the_figures_that_are_later_than_its_model(tmp_path):
    def train(*steps: int, steps_done: int = 0) -> None:
        log = open_logger(tmp_path, [], steps_done)
        for step in steps:
            log.record("time/total_timesteps", step)
            log.dump(step)
        log.record("eval/mean_reward", 7.5)  # an evaluation after the training is not an update
        log.dump(steps[-1])
        log.close()

    train(64, 128, 192)
    train(128, 256, steps_done=100)
    train(320, steps_done=256)
    names, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    assert names == "time/total_timesteps,eval/mean_reward"
    assert rows == ["64,", "128,", "256,", ",7.5", "320,", ",7.5"]
    shown = logged(tmp_path)
    assert [step for step, _ in shown["time/total_timesteps"]] == [64, 128, 256, 320]
    assert [step for step, _ in shown["eval/mean_reward"]] == [256, 320]


def logged(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The steps and values that TensorBoard would show, by name."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(scalar.step, scalar.value) for scalar in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_episodes_that_a_full_disk_refuses_are_written_later(tmp_path, full_disk):
    path = tmp_path / "episodes.csv"
    rows = [EpisodeRow(number, float(number), 1, float(number)) for number in range(4)]
    with full_disk():
        log = EpisodeLog(path)
    assert list(tmp_path.iterdir()) == []
    log.add(rows[0])
    with full_disk():
        log.add(rows[1])
        log.add(rows[2])
    assert [file.name for file in tmp_path.iterdir()] == ["episodes.csv"]
    log.add(rows[3])
    log.close()
    assert read_rows(path, EpisodeRow) == log.episodes == rows


# ---- the file of episodes ------------------------------------------------------------------------


FIRST = EpisodeRow(total_steps=240, episode_return=1.0, length=240, wall_time_s=0.5)
SECOND = EpisodeRow(total_steps=480, episode_return=2.0, length=240, wall_time_s=1.0)
CUT_SHORT = EpisodeRow(500, 0.0, 20, 1.1, fault="game-exited")


def test_every_episode_is_in_the_file_at_once(tmp_path):
    log = EpisodeLog(tmp_path / "episodes.csv")
    log.add(FIRST)
    log.add(CUT_SHORT)
    assert read_rows(tmp_path / "episodes.csv", EpisodeRow) == [FIRST, CUT_SHORT]
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
    assert read_rows(path, EpisodeRow) == [FIRST, CUT_SHORT]


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
