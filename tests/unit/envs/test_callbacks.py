"""`SnapshotCallback`: when snapshots are taken, and what is counted; figures of the statistics."""

from __future__ import annotations

import logging

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, Logger

from sc2pool import ConfigError, SnapshotCallback, SnapshotStore
from sc2pool.envs.callbacks import figures
from sc2pool.pool.statistics.stats import Counters, PoolStats
from sc2pool.tasks.opponents.results import read_scores
from sc2pool.tasks.opponents.snapshots import WIN_RATES_FILE


class Won(gymnasium.Env):
    """Every match lasts ten steps and is won, by turns against step-0 and a stranger."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    matches = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        self.matches += 1
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        over = self.steps == 10
        name = "step-0" if self.matches % 2 else "step-7"
        info = {"sc2pool.opponent": name, "sc2pool.result": "win"} if over else {}
        return np.zeros(2, np.float32), 0.0, over, False, info


class Kept(KVWriter):
    """Keeps the newest figures."""

    def write(self, key_values, key_excluded, step=0):
        self.figures = dict(key_values)

    def close(self):
        pass


@pytest.fixture
def model():
    return PPO("MlpPolicy", Won(), n_steps=64, batch_size=64, device="cpu")


def test_snapshots_and_win_rates(model, tmp_path):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    kept = Kept()
    model.set_logger(Logger(None, [kept]))
    model.learn(128, callback=SnapshotCallback(store, every=50))
    assert [one.name for one in store.snapshots()] == ["step-0", "step-50", "step-100"]
    scores = read_scores(store.folder / WIN_RATES_FILE)
    assert scores.keys() == {"step-0"}  # the stranger is none of the snapshots
    assert scores["step-0"].played >= 3
    assert kept.figures["self_play/win_rate/step-0"] == 1.0


def test_matches_are_figures():
    counters = Counters()
    assert not any("/" in name for name in figures(stats_of(counters)))
    for result in ("win", "loss", "undecided", "win"):
        counters.count_match("step-0", result)
    found = figures(stats_of(counters))
    assert (found["matches/step-0"], found["win_rate/step-0"]) == (4, 0.5)


def stats_of(counters: Counters) -> PoolStats:
    return counters.snapshot([], steps_per_s=None, watchdog_cpu_s=0.0)


def test_a_later_training_goes_on(model, tmp_path):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    callback = SnapshotCallback(store, every=100)
    model.learn(128, callback=callback)
    model.learn(128, callback=callback, reset_num_timesteps=False)
    assert [one.name for one in store.snapshots()] == ["step-0", "step-100", "step-228"]


def test_a_disk_that_refuses_ends_no_training(model, tmp_path, caplog):
    store = SnapshotStore(tmp_path / "store")
    callback = SnapshotCallback(store, every=50)
    (store.folder / "step-50.zip").mkdir()  # in the place of the file
    (store.folder / WIN_RATES_FILE).mkdir()
    store.add(model, 0)
    with caplog.at_level(logging.WARNING, "sc2pool"):
        model.learn(64, callback=callback)
    assert model.num_timesteps == 64
    said = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("no snapshot at 50 steps: ") for line in said)
    assert any(line.startswith("the win rates cannot be written: ") for line in said)


def test_win_rates_outlive_a_folder_that_cannot_be_listed_for_a_while(model, tmp_path, monkeypatch):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    callback = SnapshotCallback(store, every=1000)
    model.learn(64, callback=callback)
    played = read_scores(store.folder / WIN_RATES_FILE)["step-0"].played
    monkeypatch.setattr(SnapshotStore, "snapshots", lambda _: [])
    model.learn(64, callback=callback, reset_num_timesteps=False)
    assert read_scores(store.folder / WIN_RATES_FILE)["step-0"].played > played


@pytest.mark.parametrize("every", [0, -1, 2.5, "10"])
def test_every_must_be_a_number_of_steps(tmp_path, every):
    with pytest.raises(ConfigError, match="every must be a whole number of at least 1"):
        SnapshotCallback(SnapshotStore(tmp_path), every)
