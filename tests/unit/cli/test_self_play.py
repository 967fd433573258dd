"""Tests a run with self-play: its folder, its opponents, and the file and picture of matches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, create_autospec

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from sc2pool.cli.stop import Stop
from sc2pool.cli.training import self_play
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.self_play import (
    MatchEvaluation,
    ResultLog,
    ResultRow,
    begin_snapshots,
    draw_win_rates,
    play_matches,
    read_results,
)
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.unit.cli.conftest import options


@pytest.mark.parametrize("shared", [".", "snapshots"])
def test_snapshots_are_not_loaded_from_a_folder_of_all_users(tmp_path: Path, shared: str) -> None:
    """Snapshots that another user can have written are refused: loading one may run code."""
    (tmp_path / "snapshots").mkdir()
    (tmp_path / shared).chmod(0o1777)
    run = options(tmp_path, task="MarineDuel", self_play="uniform", snapshot_every=100)
    with pytest.raises(ConfigError, match="snapshots are loaded from it, but every user may write"):
        begin_snapshots(run, create_autospec(PPO, instance=True))


class Scripted(MoveToBeacon):
    players = 2

    @staticmethod
    def scripted(observation: Any) -> int:
        return 3


def test_both_sides_learn_or_one_against_the_store(tmp_path):
    for mode in ("", "shared"):
        assert self_play.learns_against(options(tmp_path, task=Scripted, self_play=mode)) is None
    store = self_play.learns_against(options(tmp_path, task=Scripted, self_play="prioritised"))
    assert (store.rule, store.folder) == ("prioritised", tmp_path / "snapshots")
    assert store.latest_share == 0.5


@pytest.mark.parametrize(
    ("task", "names"), [(Scripted, ["first", "scripted"]), (MoveToBeacon, ["first"])]
)
def test_yardsticks(tmp_path, task, names):
    found = self_play.opponents_of(options(tmp_path, task=task, self_play="shared"))
    assert list(found) == names


class Match(gymnasium.Env[Any, Any]):
    """A match against "weak" is won in one step, and a match against "strong" is lost in three.

    As in a pool, the opponents take turns over the matches of all envs.
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
    how = {"agents": 1} | others
    return play_matches(model_of(algorithm), env, matches, stop=Stop(), **how)


@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_the_first_that_begin_are_counted(new_match, algorithm):
    watcher = Mock()
    found = played(DummyVecEnv([new_match] * 3), 10, algorithm, watchers=[watcher])
    assert found == {"weak": {"win": 5}, "strong": {"loss": 5}}
    assert watcher.begin.call_count == 1
    _, _, _, over, _ = watcher.step.call_args_list[0].args
    assert over[0]


def test_a_match_with_a_fault_does_not_count(new_match):
    found = played(DummyVecEnv([lambda: new_match(faulty=(1, 2))]), 6)
    assert found == {"weak": {"win": 2}, "strong": {"loss": 2}}


class Rows(VecEnvWrapper):
    """Envs of two rows each; both rows get the same info."""

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
    return MatchEvaluation(DummyVecEnv([lambda: env]), ["weak", "strong"], about, stop or Stop())


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
    assert (tmp_path / "best_model.zip").read_bytes() == best  # later models were not better


def test_a_best_model_that_was_not_saved_is_not_the_best(new_match, tmp_path):
    """If the best model could not be saved, the file still holds the model of step 0."""
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


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS])
def test_it_is_drawn_with_any_number_of_rows(tmp_path, rows):
    draw_win_rates(tmp_path / "curve.png", rows, "MarineDuel · 4 matches")
    with Image.open(tmp_path / "curve.png") as picture:
        assert picture.size == (1080, 624)
    assert [path.name for path in tmp_path.iterdir()] == ["curve.png"]
