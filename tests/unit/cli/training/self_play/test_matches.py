"""Matches against fixed opponents: which count, when they are played, what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from sc2pool.cli.stop import Stop
from sc2pool.cli.training.self_play.matches import MatchEvaluation, play_matches
from sc2pool.cli.training.self_play.results import ResultLog, ResultRow, read_results
from sc2pool.cli.training.settings.options import TrainOptions
from tests.unit.cli.training.conftest import options


class Match(gymnasium.Env[Any, Any]):
    """Against "weak" the match is won after one step, against "strong" lost after three.

    The opponents take turns over the matches of all envs, as they do in a pool.
    """

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    begun = 0

    def __init__(self, stop: Stop | None = None, faulty: tuple[int, ...] = ()) -> None:
        self.stop = stop
        self.faulty = faulty
        self.seeds: list[int | None] = []

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.seeds.append(seed)
        self.steps, self.number = 0, Match.begun
        Match.begun += 1
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.stop is not None:
            self.stop.signal = 2
        self.steps += 1
        strong = self.number % 2 == 1
        over = self.steps == (3 if strong else 1)
        info = {}
        if over and self.number not in self.faulty:
            info = {
                "sc2pool.opponent": "strong" if strong else "weak",
                "sc2pool.result": "loss" if strong else "win",
            }
        return np.zeros(2, np.float32), 0.0, over, False, info

    def action_masks(self) -> Any:
        return np.array([True, False])


@pytest.fixture
def new_match() -> Callable[..., Match]:
    Match.begun = 0
    return Match


def model_of(algorithm: type[PPO] | type[MaskablePPO] = PPO) -> Any:
    return algorithm("MlpPolicy", DummyVecEnv([Match]), n_steps=64, batch_size=64, device="cpu")


def played(env: VecEnv, matches: int, algorithm: type[Any] = PPO, **others: Any) -> Any:
    how = {"agents": 1, "masks": algorithm is MaskablePPO, "film": lambda _: None} | others
    return play_matches(model_of(algorithm), env, matches, stop=Stop(), **how)


@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_the_first_that_begin_are_counted(new_match, algorithm):
    films: list[bool] = []
    found = played(DummyVecEnv([new_match] * 3), 10, algorithm, film=films.append)
    assert found == {"weak": {"win": 5}, "strong": {"loss": 5}}
    assert films[0]


def test_a_match_with_a_fault_does_not_count(new_match):
    found = played(DummyVecEnv([lambda: new_match(faulty=(1, 2))]), 6)
    assert found == {"weak": {"win": 2}, "strong": {"loss": 2}}


class Rows(VecEnvWrapper):
    """Each env has two rows, which are told the same."""

    def __init__(self, games: VecEnv) -> None:
        super().__init__(games)
        self.num_envs *= 2

    def reset(self) -> Any:
        return np.repeat(self.venv.reset(), 2, axis=0)

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(actions[::2])

    def step_wait(self) -> Any:
        seen, rewards, dones, infos = self.venv.step_wait()
        told = [info for info in infos for _ in range(2)]
        return np.repeat(seen, 2, axis=0), rewards.repeat(2), dones.repeat(2), told


def test_the_agents_of_a_team_count_as_one(new_match):
    found = played(Rows(DummyVecEnv([new_match, new_match])), 6, agents=2)
    assert found == {"weak": {"win": 3}, "strong": {"loss": 3}}


def evaluation(env: Match, about: TrainOptions, stop: Stop | None = None) -> MatchEvaluation:
    log = ResultLog(about.out / "win_rates.csv", about.steps_done)
    games = DummyVecEnv([lambda: env])
    return MatchEvaluation(games, ["weak", "strong"], about, stop or Stop(), log)


def test_matches_before_while_and_after(new_match, tmp_path, capsys):
    env = new_match()
    model_of().learn(256, callback=evaluation(env, options(tmp_path)))
    rows = read_results(tmp_path / "win_rates.csv")
    assert [(row.total_steps, row.opponent, row.games) for row in rows] == [
        (steps, opponent, games)
        for steps, games in ((0, 2), (100, 2), (200, 2), (256, 10))
        for opponent in ("weak", "strong")
    ]
    assert {row.win_rate for row in rows if row.opponent == "weak"} == {1.0}
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == (
        "evaluation at 256 steps: won 10 of 10 against weak, won 0 of 10 against strong"
    )
    assert (tmp_path / "best_model.zip").exists()
    assert len({seed for seed in env.seeds if seed is not None}) == 1


def test_an_odd_number_becomes_even(new_match, tmp_path):
    model_of().learn(64, callback=evaluation(new_match(), options(tmp_path, eval_episodes=1)))
    assert [row.games for row in read_results(tmp_path / "win_rates.csv")] == [2, 2, 6, 6]


def test_a_resumed_run_is_not_evaluated_at_its_start(new_match, tmp_path):
    model = model_of()
    model.learn(64, callback=evaluation(new_match(), options(tmp_path)))
    best = (tmp_path / "best_model.zip").read_bytes()
    again = evaluation(new_match(), options(tmp_path, steps_done=64))
    model.learn(64, callback=again, reset_num_timesteps=False)
    rows = read_results(tmp_path / "win_rates.csv")
    assert [row.total_steps for row in rows] == [0, 0, 64, 64, 128, 128]
    assert (tmp_path / "best_model.zip").read_bytes() == best  # the later one is not better


def test_a_best_model_that_was_not_saved_is_not_the_best(new_match, tmp_path):
    """The disk was full, or the program was killed: what is saved is of step 0."""
    model = model_of()
    model.save(tmp_path / "best_model.zip")
    log = ResultLog(tmp_path / "win_rates.csv")
    for steps, wins in ((0, 0), (100, 2)):
        log.add(*(ResultRow(steps, name, 2, wins, 2 - wins) for name in ("weak", "strong")))
    model.num_timesteps = 100
    model.learn(
        64,
        callback=evaluation(new_match(), options(tmp_path, steps_done=100)),
        reset_num_timesteps=False,
    )
    assert PPO.load(tmp_path / "best_model.zip", device="cpu").num_timesteps == 164


def test_a_signal_ends_the_matches(new_match, tmp_path):
    stop = Stop()
    env = new_match(stop)
    model_of().learn(64, callback=evaluation(env, options(tmp_path), stop))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(new_match, tmp_path, full_disk, capsys):
    callback = evaluation(new_match(), options(tmp_path))
    with full_disk():
        model_of().learn(64, callback=callback)
    assert f"cannot save the evaluation to {tmp_path}: " in capsys.readouterr().out
    callback.evaluate(2)
    assert [row.total_steps for row in read_results(tmp_path / "win_rates.csv")][-1] == 64
