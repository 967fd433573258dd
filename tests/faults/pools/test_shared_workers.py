"""Workers that host several envs: what happens to one game is its own; a worker's end is not."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil
import pytest
from fault_bots import ShortBot
from fault_pools import LENIENT, SEED, MakeEnv, assert_same_run, record, step
from fault_tasks import Short, harm_action

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig

N = 3
"""The envs of two workers, if each serves two."""
TWO_EACH = PoolConfig(
    envs_per_worker=2, restart=LENIENT, limits=Limits(step_s=1.0, worker_grace_s=1.0)
)


def workers_of(env: SubprocSC2VecEnv) -> list[int | None]:
    return [instance.worker_pid for instance in env.stats().instances[: env.num_envs]]


def step_until_done(env: SubprocSC2VecEnv, actions: Sequence[int]) -> tuple[Any, list[Any]]:
    """Step until an env is done, at most for a few steps: its dones and infos."""
    for _ in range(5):
        _, _, dones, infos = step(env, *actions)
        if dones.any():
            return dones, infos
    raise AssertionError("no fault was noticed")


def test_they_are_shared_and_play_the_same(make_env: MakeEnv) -> None:
    alone = make_env(task=Short, n=N, seed=SEED, config=PoolConfig(envs_per_worker=1))
    shared = make_env(task=Short, n=N, seed=SEED, config=TWO_EACH)
    one, other = record(alone, 12), record(shared, 12)
    assert_same_run(other, one)
    assert np.any(other.dones)
    assert len(set(workers_of(alone))) == N
    assert len(set(workers_of(shared))) == 2


@pytest.mark.parametrize("harm", ["game KILL", "game STOP", "game hang"])
def test_a_games_fault_is_its_own(begun: MakeEnv, harm: str) -> None:
    env = begun(n=2, config=TWO_EACH)
    before = workers_of(env)
    dones, infos = step_until_done(env, [0, harm_action(harm)])
    assert dones.tolist() == [False, True]
    assert infos[1]["sc2pool.synthetic"]
    assert workers_of(env) == before, "the successor moved into the same worker"
    for _ in range(3):
        _, _, dones, infos = step(env, 0, 0)
        assert not dones.any()
        assert infos == [{"TimeLimit.truncated": False}] * 2
    assert sum(env.stats().recycles.values()) == 1


@pytest.mark.parametrize("harm", ["worker KILL", "worker STOP"])
def test_a_workers_end_is_one_truncation_for_each_of_its_envs(begun: MakeEnv, harm: str) -> None:
    env = begun(n=4, config=TWO_EACH)
    before = workers_of(env)
    dones, infos = step_until_done(env, [harm_action(harm), 0, 0, 0])
    assert dones.tolist() == [True, True, False, False]
    for info in infos[:2]:
        assert info["TimeLimit.truncated"] and info["sc2pool.synthetic"]
    after = workers_of(env)
    assert after[2:] == before[2:]
    assert after[0] == after[1] != before[0]
    for _ in range(3):
        _, _, dones, infos = step(env, 0, 0, 0, 0)
        assert not dones.any()
        assert infos == [{"TimeLimit.truncated": False}] * 4
    assert sum(env.stats().recycles.values()) == 2


def test_bots_share_a_worker_like_tasks(make_env: MakeEnv) -> None:
    alone = make_env(task=ShortBot, n=2, config=PoolConfig(envs_per_worker=1))
    shared = make_env(task=ShortBot, n=2, config=TWO_EACH)
    one, other = record(alone, 12), record(shared, 12)
    assert_same_run(other, one)
    assert len({instance.worker_pid for instance in shared.stats().instances[:2]}) == 1
    shared.reset()
    killed = shared.stats().instances[1].pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    _, _, dones, infos = step(shared, 0, 0)
    assert dones.tolist() == [False, True]
    assert infos[1]["sc2pool.synthetic"]
    _, _, dones, infos = step(shared, 0, 0)
    assert not dones.any() and infos == [{"TimeLimit.truncated": False}] * 2


def test_a_pause_is_of_one_game(begun: MakeEnv) -> None:
    env = begun(n=2, config=TWO_EACH)
    games = [psutil.Process(instance.pid) for instance in env.stats().instances]
    env.pause([1])
    assert [game.status() == psutil.STATUS_STOPPED for game in games] == [False, True]
    env.resume([1])
    assert not any(game.status() == psutil.STATUS_STOPPED for game in games)
    assert not step(env, 0, 0)[2].any()


def test_spares_live_there_too(begun: MakeEnv) -> None:
    env = begun(n=N, spares=1, config=TWO_EACH)
    instances = env.stats().instances
    before = {instance.worker_pid for instance in instances}
    assert len(before) == 2
    os.kill(instances[0].pid, signal.SIGKILL)
    dones, _ = step_until_done(env, [0, 0, 0])
    assert dones.tolist() == [True, False, False]
    env.reset()
    assert {instance.worker_pid for instance in env.stats().instances} - {None} == before
    assert not step(env, 0, 0, 0)[2].any()
