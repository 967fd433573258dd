"""The pool's counters in Stable-Baselines3's log."""

from __future__ import annotations

import psutil
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool import PoolStatsCallback
from sc2pool.envs import callbacks
from sc2pool.errors import ConfigError
from sc2pool.pool.report import live_files
from tests.contract.envs import Counting


def logged(folder) -> dict[str, list[float]]:
    """What TensorBoard would show, by name."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        name: [scalar.value for scalar in accumulator.Scalars(name)]
        for name in accumulator.Tags()["scalars"]
    }


def test_counters_reach_tensorboard(vec_task, tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "_RECORD_EVERY_S", 0.0)
    env = vec_task(n=2, seed=1)
    model = PPO("MlpPolicy", VecMonitor(env), n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["tensorboard"]))
    model.learn(32, callback=PoolStatsCallback())
    psutil.Process(env.stats().instances[1].pid).kill()
    model.learn(32, callback=CallbackList([PoolStatsCallback()]), reset_num_timesteps=False)
    model.logger.close()
    values = logged(tmp_path)
    assert len(values["pool/launches"]) == 4
    assert values["pool/launches"][0] == 2
    assert values["pool/launches"][-1] == 3
    assert values["pool/faults"] == [0, 0, 1, 1]
    assert values["pool/recycles/game-exited"] == [1, 1]
    assert len(values["pool/steps_per_s"]) == 2  # the first rollout of a run has none before it
    assert min(values["pool/steps_per_s"]) > 0
    assert values["pool/recovery_s_max"][0] > 0
    assert "train/loss" in values


def test_figures_of_the_model_are_shown_by_the_pool(vec_task, wait_for, monkeypatch):
    monkeypatch.setattr(callbacks, "_RECORD_EVERY_S", 0.0)
    env = vec_task(n=1, seed=1)
    model = PPO("MlpPolicy", VecMonitor(env), n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    model.learn(48, callback=PoolStatsCallback())

    def curves():
        live_files.request(env.pool.run_dir)
        seen = live_files.read(env.pool.run_dir / live_files.CURVE_FILE)
        return seen is not None and seen[0]["figures"]

    expected = {"loss", "value_loss", "approx_kl", "steps/s"}
    wait_for(lambda: curves() and expected <= set(curves()))
    assert env.stats().task == "MoveToBeacon"


def test_short_rollouts_do_not_cost_a_snapshot_each(vec, tmp_path, monkeypatch):
    env = vec(Counting)
    asked = []
    tell = env.stats

    def count() -> dict[str, object]:
        asked.append(1)
        return tell()

    monkeypatch.setattr(env, "stats", count)
    model = DQN("MlpPolicy", env, learning_starts=10, buffer_size=100, device="cpu")
    model.learn(40, callback=PoolStatsCallback())  # ten rollouts of four steps
    assert 1 <= len(asked) <= 3


def test_another_env_is_told_at_once():
    model = PPO("MlpPolicy", DummyVecEnv([Counting]), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ConfigError, match="needs a SubprocSC2VecEnv, got DummyVecEnv"):
        model.learn(8, callback=PoolStatsCallback())
