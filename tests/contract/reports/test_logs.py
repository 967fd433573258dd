"""The pool's log, its counters in Stable-Baselines3's log, and the live files of its games."""

from __future__ import annotations

import logging
from contextlib import closing

import numpy as np
import psutil
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool import PoolStatsCallback, SubprocSC2VecEnv
from sc2pool.config import PoolConfig, RecyclePolicy
from sc2pool.envs import callbacks
from sc2pool.envs.sb3 import threads_advice
from sc2pool.errors import ConfigError
from sc2pool.players.view import KINDS
from sc2pool.pool.report import live_files
from sc2pool.processes.tree import usable_cores
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from tests.contract.envs import Counting
from tests.support.pools import begun


class Brief(MoveToBeacon):
    """A task whose episodes have three steps."""

    max_loops = 24


def test_records_carry_env_instance_and_phase(vec_task, caplog):
    caplog.set_level(logging.INFO, "sc2pool")
    env = begun(vec_task(n=2))
    struck = env.stats().instances[1]
    psutil.Process(struck.pid).kill()
    env.step(np.array([env.action_space.sample() for _ in range(2)]))
    records = [record for record in caplog.records if record.name == "sc2pool"]
    ups = [record for record in records if record.getMessage().endswith(f"port {struck.port}")]
    assert [(up.env, up.instance, up.phase, up.levelname) for up in ups] == [
        ("env 1", 1, "launching", "INFO")
    ]
    assert f"process {struck.pid}" in ups[0].getMessage()
    (fault,) = [one for one in records if one.levelno == logging.WARNING and hasattr(one, "env")]
    assert (fault.env, fault.instance) == ("env 1", 1)
    assert fault.phase in ("idle", "stepping")
    assert fault.getMessage().startswith("env 1, instance 1: game-exited while")
    assert fault.getMessage().splitlines()[-1].endswith("a new game takes over")
    assert fault.funcName == "of_fault"


def test_a_soft_recycle_is_no_warning(vec_task, caplog):
    caplog.set_level(logging.INFO, "sc2pool")
    env = begun(vec_task(Brief, n=1, config=PoolConfig(recycle=RecyclePolicy(episodes=1))))
    done = [False]
    while not done[0]:
        _, _, done, _ = env.step(np.array([env.action_space.sample()]))
    told = [record for record in caplog.records if record.getMessage().endswith("its episodes")]
    assert [(r.env, r.instance, r.phase, r.levelname) for r in told] == [
        ("env 0", 0, "idle", "INFO")
    ]


@pytest.mark.parametrize(
    ("threads", "games", "cores", "advised"),
    [(2, 8, 2, True), (1, 8, 2, False), (2, 1, 2, False), (16, 16, 16, True), (16, 8, 16, False)],
)
def test_threads_that_take_the_games_cores(threads, games, cores, advised):
    assert (threads_advice(threads, games, cores) is not None) is advised


def test_advice_on_threads_is_given_once_and_only_for_games(caplog, standin_dir):
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with closing(SubprocSC2VecEnv([Counting] * usable_cores(), serial=True)) as env:
            env.reset()
        assert "torch computes" not in caplog.text
        with closing(SubprocSC2VecEnv(n=usable_cores(), game=standin_dir)) as env:
            env.reset()
            env.reset()
        assert caplog.text.count("torch computes with 3 threads") == 1
    finally:
        torch.set_num_threads(threads)


def logged(folder) -> dict[str, list[float]]:
    """The scalars that TensorBoard would show, by name."""
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
    assert values["pool/replacements/game-exited"] == [1, 1]
    assert len(values["pool/steps_per_s"]) == 2  # the first rollout has no rate of steps
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


def folder_of(env, index: int):
    fleet = env.pool._runtime.fleet
    return fleet.run / str(fleet.seats[index].instance.number)


@pytest.mark.parametrize("task", ["MoveToBeacon", MoveToBeaconBot], ids=["task", "bot"])
def test_live_view_is_written_on_request(vec_task, task, wait_for):
    env = begun(vec_task(task, n=1))
    folder = folder_of(env, 0)
    live_files.request(folder.parent)
    wait_for(lambda: live_files.read(folder / live_files.VIEW_FILE))
    view, _ = live_files.read(folder / live_files.VIEW_FILE)
    told, _ = live_files.read(folder / live_files.MAP_FILE)
    assert view["map"] == told["key"]
    assert told["name"] == "MoveToBeacon"
    first_loop = view["loop"]
    kinds = [KINDS[row[0]] for row in view["units"]]
    assert sorted(kinds) == ["beacon", "own"]
    env.step([env.action_space.sample()])

    def stepped() -> bool:
        live_files.request(folder.parent)
        return live_files.read(folder / live_files.VIEW_FILE)[0]["loop"] == first_loop + 8

    wait_for(stepped)


def test_an_env_without_a_game_is_logged_and_shows_nothing(vec, caplog, wait_for):
    caplog.set_level(logging.INFO, "sc2pool")
    env = begun(vec(Counting))
    assert "env 0, instance 0: up, without a game" in caplog.messages
    folder = folder_of(env, 0)
    live_files.request(folder.parent)
    pool_file = folder.parent / live_files.POOL_FILE
    wait_for(lambda: live_files.read(pool_file))
    (row,) = live_files.read(pool_file)[0]["instances"]
    assert (row["pid"], row["port"], row["episode_return"]) == (None, None, 0.0)
    assert live_files.read(folder / live_files.VIEW_FILE) is None
    env.close()
    assert not folder.parent.exists(), "although someone looks"
