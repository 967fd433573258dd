"""Tests of `train` on CartPole (files, `--resume`, stops), and of trials of `tune` on one pool."""

from __future__ import annotations

import csv
import json
import re
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import optuna
import pytest
import sb3_contrib
import torch
import yaml
from gymnasium import spaces
from sqlalchemy.exc import OperationalError
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool.cli.stop import Stop, Stopped
from sc2pool.cli.training.algorithms import Hyperparameters, read_hyperparameters
from sc2pool.cli.training.model import make_model
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.run_folder import EpisodeRow, read_rows, read_steps, reserved
from sc2pool.cli.training.train import run, train
from sc2pool.cli.tune import open_study
from sc2pool.errors import ConfigError, CrashLoopError
from sc2pool.shell import called
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.support.installations import changed

SHORT = Hyperparameters(arguments={"n_steps": 128})


def make_env() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def train_cartpole(
    out: Path,
    steps: int,
    *,
    resume: Path | None = None,
    stop: Stop | None = None,
    make: Callable[[], gymnasium.Env[Any, Any]] = make_env,
) -> None:
    options = TrainOptions(
        out=out,
        n=2,
        steps=steps,
        hyperparameters=read_hyperparameters("ppo", "MoveToBeacon"),
        seed=1,
        resume=resume,
        steps_done=0 if resume is None else read_steps(resume, "ppo"),
    )
    train(DummyVecEnv([make] * 2), options, game_version="CartPole", stop=stop or Stop())


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def weights(model_file: Path) -> torch.Tensor:
    policy = PPO.load(model_file, device="cpu").policy
    return torch.cat([parameter.flatten() for parameter in policy.parameters()])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 512 steps."""
    out: Path = tmp_path_factory.mktemp("runs") / "first"
    train_cartpole(out, 512)
    return out


def test_a_run_leaves_model_curve_logs_and_config(finished: Path) -> None:
    names = sorted(path.name for path in finished.iterdir())
    assert [name for name in names if "tfevents" not in name] == [
        "config.json",
        "episodes.csv",
        "learning_curve.png",
        "model.zip",
        "progress.csv",
    ]
    assert sum("tfevents" in name for name in names) == 1
    config = json.loads((finished / "config.json").read_text())
    assert config["options"]["steps"] == 512
    assert config["game_version"] == "CartPole"
    assert config["versions"]["torch"] == torch.__version__
    assert config["versions"]["sb3-contrib"] == sb3_contrib.__version__
    assert column(finished / "progress.csv", "time/total_timesteps") == ["256", "512"]


def test_the_episodes_add_up(finished: Path) -> None:
    episodes = read_rows(finished / "episodes.csv", EpisodeRow)
    assert episodes
    assert all(e.episode_return == e.length > 0 for e in episodes)
    # The two envs step together. The last steps of an env may belong to an unfinished episode.
    assert sum(e.length for e in episodes) <= episodes[-1].total_steps <= 512


def test_the_same_seed_gives_the_same_policy(finished: Path, tmp_path: Path) -> None:
    train_cartpole(tmp_path / "again", 512)
    assert torch.equal(weights(finished / "model.zip"), weights(tmp_path / "again/model.zip"))


def test_a_resumed_run_appends_and_counts_on(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "resumed"
    before = read_rows(finished / "episodes.csv", EpisodeRow)
    train_cartpole(out, 1024, resume=finished / "model.zip")
    episodes = read_rows(out / "episodes.csv", EpisodeRow)
    assert episodes[: len(before)] == before
    assert len(episodes) > len(before)
    steps = [e.total_steps for e in episodes]
    assert steps == sorted(steps)
    times_s = [e.wall_time_s for e in episodes]
    assert times_s == sorted(times_s)
    assert column(out / "progress.csv", "time/total_timesteps") == ["256", "512", "768", "1024"]
    # The second part of the run does not repeat the first part.
    assert [e.length for e in episodes[len(before) :]][:5] != [e.length for e in before][:5]


def test_a_run_that_another_training_has_ended_meanwhile(finished: Path) -> None:
    options = TrainOptions(
        out=finished,
        steps=512,
        hyperparameters=SHORT,
        resume=finished / "model.zip",
        steps_done=256,  # the run had 256 steps when the arguments were checked
    )
    with pytest.raises(ConfigError, match=r"model\.zip has 512 steps already: give more as --st"):
        run(options)


@pytest.mark.parametrize(
    ("algo", "wrong", "told"),
    [
        ("ppo", {"batch_size": 1}, "PPO refuses its hyperparameters"),
        ("async-ppo", {"batch_size": 1}, "AsyncPPO refuses its hyperparameters"),
        ("async-ppo", {"actor": "proces"}, r"actor must be one of .*, got 'proces'"),
        ("async-ppo", {"max_lag": -1}, "max_lag is a number of updates, at least 0, got -1"),
    ],
)
def test_a_value_that_the_algorithm_refuses_starts_no_game(
    algo: str, wrong: dict[str, object], told: str, tmp_path: Path, standin_dir: Path
) -> None:
    """The game is broken, so its start would raise another error than the expected one."""
    broken = changed(standin_dir, tmp_path / "broken", lambda _: "#!/bin/false\n")
    options = TrainOptions(
        out=tmp_path / "run",
        algo=algo,
        n=1,
        steps=64,
        hyperparameters=Hyperparameters(arguments=wrong),
        installation=broken,
    )
    with pytest.raises(ConfigError, match=told):
        run(options)
    assert not options.out.exists()


class InStep200(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An env that calls a function in its 200th step."""

    def __init__(self, env: gymnasium.Env[Any, Any], call: Callable[[], None]) -> None:
        super().__init__(env)
        self.steps, self.call = 0, call

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == 200:
            self.call()
        return super().step(action)


def test_sigterm_saves_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The signal is raised in this process; `test_train_games.py` sends Ctrl-C to a program."""

    def terminate() -> None:
        if stop.signal is None:  # only one of the two envs sends the signal
            signal.raise_signal(signal.SIGTERM)

    out, stop = tmp_path / "run", Stop()
    with stop.handling():
        train_cartpole(out, 2000, stop=stop, make=lambda: InStep200(make_env(), terminate))
    assert stop.signal == signal.SIGTERM
    printed = capsys.readouterr().out
    assert f"{called('sc2pool')} train --resume {out}" in printed
    assert f"to see it play: {called('sc2pool')} play {out}" in printed
    assert 0 < PPO.load(out / "model.zip", device="cpu").num_timesteps < 1000
    assert (out / "learning_curve.png").stat().st_size > 0
    assert read_rows(out / "episodes.csv", EpisodeRow)


def test_a_second_signal_saves_nothing(tmp_path: Path) -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # `ray.get` also raises this in place of `Stopped`

    stop = Stop()
    with pytest.raises(Stopped), stop.handling():
        train_cartpole(tmp_path, 2000, stop=stop, make=lambda: InStep200(make_env(), interrupt))
    assert not (tmp_path / "model.zip").exists()


PROGRESS = """
import sys
from sc2pool.cli.training.progress import Figures, open_display
with open_display() as display:
    for steps in (0, 123_456):
        display.show(Figures(steps, 1_500_000, 1234.5, -123.45, 12_345, 17))
    sys.stdin.readline()
print("the end")
"""


def test_the_progress_is_redrawn_in_place(
    screen: Callable[..., Any], wait_for: Callable[..., None]
) -> None:
    shown = screen(60, sys.executable, "-c", PROGRESS)
    wait_for(lambda: shown.shows("123,456"), 120)
    words = " ".join(" ".join(shown.lines()).split())
    assert "17 cut short by faults" in words
    assert words.count(" / 1,500,000 steps") == 1
    shown.press("Enter")
    wait_for(lambda: shown.ended)


class Failing(gymnasium.Env[Any, Any]):
    """An env that ends every third episode by a fault, and raises after 600 steps."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps > 600:
            raise CrashLoopError("env 0: three causes")
        end = self.steps % 10 == 0
        info = {"sc2pool.fault": {"kind": "game-exited"}} if self.steps % 30 == 0 else {}
        return np.zeros(2, np.float32), 1.0, False, end, info


def test_an_error_saves_before_it_is_raised(tmp_path: Path) -> None:
    options = TrainOptions(out=tmp_path / "run", n=1, steps=10_000, hyperparameters=SHORT)
    with pytest.raises(CrashLoopError):
        train(DummyVecEnv([Failing]), options, game_version="1", stop=Stop())
    assert (options.out / "model.zip").exists()
    episodes = read_rows(options.out / "episodes.csv", EpisodeRow)
    assert [e.fault for e in episodes] == ["", "", "game-exited"] * 20


def test_a_model_of_other_spaces_is_refused(finished: Path, tmp_path: Path) -> None:
    options = TrainOptions(
        out=tmp_path, n=1, steps=10_000, hyperparameters=SHORT, resume=finished / "model.zip"
    )
    with pytest.raises(ConfigError, match="does not fit MoveToBeacon"):
        make_model(DummyVecEnv([Failing]), options)


@pytest.fixture
def tune(in_process, standin_dir, tmp_path):
    options = [f"--game={standin_dir}", f"--out={tmp_path / 'search'}", "--n=1"]
    return partial(in_process, "tune", *options, "--eval-episodes=1")


def test_it_searches_goes_on_and_writes_the_best(tune, tmp_path):
    code, said, _ = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=2")
    assert code == 0
    assert said.count("trial ") == 2
    code, said, _ = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=3")
    assert (code, said.count("trial ")) == (0, 1)

    search = tmp_path / "search"
    study = optuna.load_study(study_name="sc2pool", storage=f"sqlite:///{search / 'study.db'}")
    values = [trial.value for trial in study.trials]
    assert len(values) == 3
    assert len({str(trial.params) for trial in study.trials}) == 3
    best = yaml.safe_load((search / "best.yml").read_text())
    assert list(best) == ["3m"]
    assert best["3m"]["learning_rate"] == study.best_trial.params["learning_rate"]
    found = read_hyperparameters("maskable-ppo", "3m", search / "best.yml")
    assert found.n_timesteps == read_hyperparameters("maskable-ppo", "3m").n_timesteps
    assert re.search(r"--algo maskable-ppo --hyperparameters .*best.yml\n$", said)

    # The folder looks as if the search was killed before it wrote its best trial's file.
    written = (search / "best.yml").read_text()
    (search / "best.yml").unlink()
    assert tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=3")[0] == 0
    assert (search / "best.yml").read_text() == written

    for other in ("--steps=512", "--seed=2"):
        code, _, complaint = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", other)
        assert code == 2
        assert "holds another search" in complaint


class Broken(MoveToBeacon):
    """A user's task with a mistake."""

    def reward(self):
        raise RuntimeError("a mistake of the task")


def test_games_that_fail_end_the_search_and_no_trial_counts(tune, tmp_path):
    for _ in range(2):
        code, said, complaint = tune(f"--task={__name__}:Broken", "--steps=64", "--trials=2")
        assert code == 2
        assert "a mistake of the task" in complaint
        assert "trial 0" not in said
    storage = f"sqlite:///{tmp_path / 'search' / 'study.db'}"
    study = optuna.load_study(study_name="sc2pool", storage=storage)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "FAIL"]


def test_a_study_that_is_damaged(tune, tmp_path):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "study.db").write_text("no database" * 100)
    code, _, complaint = tune("--trials=1")
    assert code == 2
    assert "its study.db cannot be used" in complaint


def test_a_disk_that_becomes_full(tune, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        full = OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
        raise optuna.exceptions.StorageInternalError("This typically happens …") from full

    monkeypatch.setattr(optuna.study.Study, "tell", refuse)
    code, _, complaint = tune("--task=3m", "--steps=64", "--trials=1")
    assert code == 2
    assert "its study.db cannot be used ((sqlite3.OperationalError) database or disk is f" in (
        complaint
    )


def test_a_folder_whose_search_never_began(tmp_path):
    """The folder looks like that of a search whose games could not be launched."""
    open_study(tmp_path, {"seed": 0, "n": 100_000})
    study = open_study(tmp_path, {"seed": 0, "n": 1})
    assert study.user_attrs["asked"] == {"seed": 0, "n": 1}


def test_two_searches_at_once(tune, tmp_path):
    """Optuna's tables are created once, and no trial is played twice."""
    with reserved(tmp_path / "search"):
        code, said, complaint = tune("--trials=1")
        assert list((tmp_path / "search").glob("*.db")) == []
    assert (code, said) == (2, "")
    assert "another training writes into this folder" in complaint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo=async-ppo"], "--algo async-ppo: tune knows ppo, maskable-ppo, "),
        (["--algo=sac"], "--algo sac plays Box actions"),
        (["--task=Chess"], "unknown task 'Chess'"),
        (["MoveToBeacon", "--task=3m"], "the task is given twice: MoveToBeacon, --task 3m"),
        (["--device=abacus"], "--device abacus: torch cannot use it"),
    ],
)
def test_bad_input(tune, tmp_path, arguments, message):
    code, _, complaint = tune(*arguments)
    assert code == 2
    assert message in complaint
    assert list(tmp_path.iterdir()) == []
