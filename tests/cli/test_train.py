"""A training run on CartPole: what it leaves behind, going on with it, stopping it."""

import csv
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool.cli.stop import Stop
from sc2pool.cli.training.episodes import read_episodes
from sc2pool.cli.training.model import make_model
from sc2pool.cli.training.settings.hyperparameters import Hyperparameters
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.cli.training.train import train
from sc2pool.errors import ConfigError, CrashLoopError

SHORT = Hyperparameters(arguments={"n_steps": 128})
PROGRAM = Path(__file__).with_name("train_cartpole.py")
_spec = importlib.util.spec_from_file_location("train_cartpole", PROGRAM)
assert _spec is not None
assert _spec.loader is not None
train_cartpole = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(train_cartpole)


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
    train_cartpole.train_cartpole(out, 512)
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
    assert column(finished / "progress.csv", "time/total_timesteps") == ["256", "512"]


def test_the_episodes_add_up(finished: Path) -> None:
    episodes = read_episodes(finished / "episodes.csv")
    assert episodes
    assert all(e.episode_return == e.length > 0 for e in episodes)
    # Two envs step together, so what is left over is less than one episode of each.
    assert sum(e.length for e in episodes) <= episodes[-1].total_steps <= 512


def test_the_same_seed_gives_the_same_policy(finished: Path, tmp_path: Path) -> None:
    train_cartpole.train_cartpole(tmp_path / "again", 512)
    assert torch.equal(weights(finished / "model.zip"), weights(tmp_path / "again/model.zip"))


def test_a_resumed_run_appends_and_counts_on(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "resumed"
    before = read_episodes(finished / "episodes.csv")
    train_cartpole.train_cartpole(out, 1024, resume=finished / "model.zip")
    episodes = read_episodes(out / "episodes.csv")
    assert episodes[: len(before)] == before
    assert len(episodes) > len(before)
    steps = [e.total_steps for e in episodes]
    assert steps == sorted(steps)
    times_s = [e.wall_time_s for e in episodes]
    assert times_s == sorted(times_s)
    assert column(out / "progress.csv", "time/total_timesteps") == ["256", "512", "768", "1024"]
    # The second leg is not the first one played again.
    assert [e.length for e in episodes[len(before) :]][:5] != [e.length for e in before][:5]


def test_sigterm_saves_and_ends(tmp_path: Path) -> None:
    """`test_train_games.py` does it with Ctrl-C."""
    out = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(out), "100000000"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "steps/s" in line:
                process.terminate()
                break
        rest = process.stdout.read()
        assert process.wait() == 143
    assert f"--resume {out}" in rest
    assert PPO.load(out / "model.zip", device="cpu").num_timesteps > 0
    assert (out / "learning_curve.png").stat().st_size > 0
    assert read_episodes(out / "episodes.csv")


class Failing(gymnasium.Env[Any, Any]):
    """Ends every third episode by a fault, and raises after 600 steps."""

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
    episodes = read_episodes(options.out / "episodes.csv")
    assert [e.fault for e in episodes] == ["", "", "game-exited"] * 20


def test_a_model_of_other_spaces_is_refused(finished: Path, tmp_path: Path) -> None:
    options = TrainOptions(
        out=tmp_path, n=1, steps=10_000, hyperparameters=SHORT, resume=finished / "model.zip"
    )
    with pytest.raises(ConfigError, match="does not fit MoveToBeacon"):
        make_model(DummyVecEnv([Failing]), options)
