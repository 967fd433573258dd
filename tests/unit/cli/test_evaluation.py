"""Evaluations while a policy is trained."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool.cli.stop import Stop
from sc2pool.cli.training.evaluation import Evaluation, EvaluationRow
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.run_folder import read_rows
from tests.unit.cli.conftest import options

EPISODE_STEPS = 5
FAULT = {"sc2pool.fault": {"kind": "game-exited"}}


class Scripted(gymnasium.Env[Any, Any]):
    """Episodes of five steps, whose returns come from a list; some end with a fault."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, returns: list[float], faulty: tuple[int, ...] = ()) -> None:
        self.returns = returns
        self.faulty = faulty
        self.episode = -1
        self.seeds: list[int | None] = []

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.seeds.append(seed)
        self.episode += 1
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        over = self.steps == EPISODE_STEPS
        info = FAULT if over and self.episode in self.faulty else {}
        reward = self.returns[self.episode % len(self.returns)] if over else 0.0
        return np.zeros(2, np.float32), reward, over, False, info


@pytest.fixture
def model() -> PPO:
    games = DummyVecEnv([lambda: Scripted([0.0])])
    return PPO("MlpPolicy", games, n_steps=64, batch_size=64, device="cpu")


def evaluation_of(env: Scripted, about: TrainOptions, stop: Stop | None = None) -> Evaluation:
    return Evaluation(DummyVecEnv([lambda: env]), about, stop or Stop())


def test_without_an_interval_it_evaluates_once_after_the_training(model, tmp_path):
    """The evaluation's row counts whole rollouts, which can exceed the requested steps."""
    evaluation = evaluation_of(Scripted([1.0]), options(tmp_path, eval_every=None, video=True))
    model.learn(257, callback=evaluation)
    assert [row.total_steps for row in read_rows(tmp_path / "evaluations.csv", EvaluationRow)] == [
        320
    ]


def test_it_evaluates_on_time_and_keeps_the_best(model, tmp_path):
    # Each evaluation plays two episodes, and drops a third one that has begun.
    env = Scripted([1.0, 3.0, 0.0, 7.0, 9.0, 0.0, 2.0, 2.0, 0.0])
    evaluation = evaluation_of(env, options(tmp_path))
    model.learn(256, callback=evaluation)
    rows = read_rows(tmp_path / "evaluations.csv", EvaluationRow)
    assert [row.total_steps for row in rows] == [100, 200, 256]
    assert [row.mean_return for row in rows] == [2.0, 8.0, 2.0]
    assert [row.std_return for row in rows] == [1.0, 1.0, 0.0]
    assert {row.mean_length for row in rows} == {EPISODE_STEPS}
    assert evaluation.best == rows[1]
    assert PPO.load(tmp_path / "best_model.zip", device="cpu").num_timesteps == 200
    first, second, third = [seed for seed in env.seeds if seed is not None]
    assert first == second == third


def test_episodes_with_a_fault_do_not_count(model, tmp_path):
    env = Scripted([5.0], faulty=(1,))
    model.learn(64, callback=evaluation_of(env, options(tmp_path, eval_episodes=3)))
    (row,) = read_rows(tmp_path / "evaluations.csv", EvaluationRow)
    assert (row.episodes, row.mean_return) == (2, 5.0)


def test_no_episode_without_a_fault(model, tmp_path, capsys):
    env = Scripted([5.0], faulty=tuple(range(10)))
    model.learn(64, callback=evaluation_of(env, options(tmp_path)))
    assert "no episode without a fault" in capsys.readouterr().out
    assert not (tmp_path / "evaluations.csv").exists()


def test_a_resumed_run_knows_its_best(model, tmp_path):
    model.learn(64, callback=evaluation_of(Scripted([9.0]), options(tmp_path)))
    before = (tmp_path / "best_model.zip").read_bytes()
    again = evaluation_of(Scripted([4.0]), options(tmp_path, steps_done=64))
    model.learn(64, callback=again, reset_num_timesteps=False)
    rows = read_rows(tmp_path / "evaluations.csv", EvaluationRow)
    assert [(row.total_steps, row.mean_return) for row in rows] == [(64, 9.0), (128, 4.0)]
    assert (tmp_path / "best_model.zip").read_bytes() == before


def test_a_resumed_run_drops_what_came_after_its_model(model, tmp_path):
    """Rows after the model's step are dropped; the best model's row stays until it is beaten."""
    env = Scripted([1.0, 1.0, 0.0, 9.0, 9.0, 0.0, 2.0, 2.0, 0.0])
    model.learn(192, callback=evaluation_of(env, options(tmp_path, eval_every=64)))
    again = evaluation_of(Scripted([4.0]), options(tmp_path, eval_every=64, steps_done=64))
    kept = [row.total_steps for row in read_rows(tmp_path / "evaluations.csv", EvaluationRow)]
    assert kept == [64, 128]
    model.num_timesteps = 64
    model.learn(64, callback=again, reset_num_timesteps=False)
    rows = read_rows(tmp_path / "evaluations.csv", EvaluationRow)
    assert [(row.total_steps, row.mean_return) for row in rows] == [
        (64, 1.0),
        (128, 9.0),
        (128, 4.0),
    ]
    assert again.best == rows[1]


@pytest.mark.parametrize("end", [SystemExit, OSError])
def test_a_best_model_that_was_not_saved_is_not_the_best(model, tmp_path, monkeypatch, end):
    """If a new best model could not be saved, the file still holds the earlier best model."""
    model.learn(64, callback=evaluation_of(Scripted([3.0]), options(tmp_path)))
    with monkeypatch.context() as patched, suppress(SystemExit):
        patched.setattr(model, "save", Mock(side_effect=end))
        killed = evaluation_of(Scripted([9.0]), options(tmp_path, steps_done=64))
        model.learn(64, callback=killed, reset_num_timesteps=False)
    again = evaluation_of(Scripted([4.0]), options(tmp_path, steps_done=128))
    for one in (killed, again):
        assert one.best is not None
        assert (one.best.total_steps, one.best.mean_return) == (64, 3.0)
    model.learn(64, callback=again, reset_num_timesteps=False)
    assert [row.mean_return for row in read_rows(tmp_path / "evaluations.csv", EvaluationRow)] == [
        3,
        9,
        4,
    ]
    assert PPO.load(tmp_path / "best_model.zip", device="cpu").num_timesteps == 192


def test_a_signal_ends_an_evaluation(model, tmp_path):
    stop = Stop()

    class AskedToStop(Scripted):
        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            stop.signal = 2
            return super().step(action)

    env = AskedToStop([1.0])
    model.learn(64, callback=evaluation_of(env, options(tmp_path), stop))
    assert env.steps == 1
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(model, tmp_path, full_disk, capsys):
    evaluation = evaluation_of(Scripted([1.0]), options(tmp_path))
    with full_disk():
        model.learn(64, callback=evaluation)
    assert f"cannot save the evaluation to {tmp_path}: " in capsys.readouterr().out
    assert evaluation.best is None
    evaluation.evaluate()
    assert evaluation.best is not None
    assert (tmp_path / "best_model.zip").exists()
    assert read_rows(tmp_path / "evaluations.csv", EvaluationRow) == [evaluation.best]
