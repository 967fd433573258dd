"""A run is saved while it continues; a save that fails does not end it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sc2pool.cli.training.episodes import EpisodeLog, EpisodeRow, read_episodes
from sc2pool.cli.training.logs import ProgressTable, Tolerant, open_logger
from sc2pool.cli.training.train import Saver


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
    del capfd  # on a full disk the line may not come through


def test_a_folder_that_is_gone_is_said(model, tmp_path, capsys):
    saver = Saver(model, tmp_path / "gone" / "further", lambda: None)
    (tmp_path / "gone").touch()
    saver.save()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"cannot save to {tmp_path}/gone/further: ")
    assert line.endswith("; no model is saved")


def test_figures_that_cannot_be_logged_are_lost(tmp_path, full_disk):
    path = tmp_path / "progress.csv"
    log = Logger(str(tmp_path), [Tolerant(ProgressTable(path))])
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
    """SB3 empties it when a run is resumed, and when a column is added."""
    path = tmp_path / "progress.csv"
    table = ProgressTable(path)
    table.write({"time/total_timesteps": 64, "text": 'a, "b"'}, {})
    table.close()
    with path.open("a") as file:
        file.write("12")  # the program was killed
    before = 'time/total_timesteps,text\n64,"a, ""b"""\n'
    resumed = ProgressTable(path, steps_done=64)
    assert path.read_text() == before
    with full_disk(), pytest.raises(OSError, match="large"):
        resumed.write({"new": 1.5}, {})
    assert path.read_text() == before
    resumed.write({"time/total_timesteps": 128, "new": 1.5}, {})
    assert path.read_text() == ('time/total_timesteps,text,new\n64,"a, ""b""",\n128,,1.5\n')
    resumed.close()
    assert [one.name for one in tmp_path.iterdir()] == ["progress.csv"]


def test_figures_of_all_parts_reach_tensorboard_whatever_the_clock_says(tmp_path, monkeypatch):
    """It reads the parts of a run in the order of their names."""
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
        log.record("eval/mean_reward", 7.5)  # an evaluation after the training, which is no update
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
    assert read_episodes(path) == log.episodes == rows
