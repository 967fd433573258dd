"""Tests that a fault ends only its env's episode, also if a worker hosts several envs.

`SC2VectorEnv` shows one marked truncation in each autoreset mode. The end of a worker ends the
episodes of all its envs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from fault_bots import ShortBot
from fault_pools import LENIENT, SEED, assert_same_run, processes_of, record, step
from fault_tasks import Saboteur, Short, ShortSaboteur, harm_action
from gymnasium.vector import AutoresetMode

from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig
from tests.support.pools import maker

NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode
QUIET = np.zeros(2, np.int64)
QUIET_STEPS = 3

MakeVector = Callable[..., SC2VectorEnv]


@pytest.fixture
def make_vector(standin_dir: Path) -> Iterator[MakeVector]:
    """Makes seeded pools of two games on the stand-in, and closes them."""
    with maker(SC2VectorEnv, n=2, task=Saboteur, game=standin_dir, seed=SEED) as make:
        yield make


@pytest.fixture(scope="module")
def untouched(standin_dir: Path) -> list[np.ndarray]:
    """The observations of two envs at the reset and in ten undisturbed steps."""
    with closing(SC2VectorEnv(n=2, task=Saboteur, game=standin_dir, seed=SEED)) as env:
        return [env.reset()[0], *(env.step(QUIET)[0] for _ in range(10))]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_killed_game_is_one_truncation(make_vector, untouched, mode):
    env = make_vector(autoreset_mode=mode, spares=int(mode is SAME_STEP))
    np.testing.assert_array_equal(env.reset()[0], untouched[0])
    for number in range(1, QUIET_STEPS + 1):
        np.testing.assert_array_equal(env.step(QUIET)[0], untouched[number])

    processes_of(env, 0)["game"].kill()
    observations, rewards, terminations, truncations, infos = env.step(QUIET)

    assert truncations.tolist() == [True, False]
    assert not terminations.any()
    assert rewards[0] == 0.0
    assert infos["sc2pool.synthetic"].tolist() == [True, False]
    assert infos["_sc2pool.fault"].tolist() == [True, False]
    fault = infos["sc2pool.fault"]
    assert fault["kind"].tolist() == ["game-exited", None]
    assert fault["instance"][0] == 0
    assert Path(fault["fault_report"][0]).is_dir()
    assert "SIGKILL" in fault["detail"][0]
    np.testing.assert_array_equal(observations[1], untouched[QUIET_STEPS + 1][1])
    last = untouched[QUIET_STEPS][0]
    if mode is SAME_STEP:
        np.testing.assert_array_equal(infos["final_obs"][0], last)
        assert infos["final_info"]["sc2pool.synthetic"].tolist() == [True, False]
        first = observations[0]
    else:
        np.testing.assert_array_equal(observations[0], last)
        if mode is NEXT_STEP:
            observations, rewards, _, truncations, infos = env.step(QUIET)
            assert rewards[0] == 0.0
            assert not truncations.any()
        else:
            observations, infos = env.reset(options={"reset_mask": truncations})
        assert infos == {}, "told once"
        first = observations[0]
    shown_last = QUIET_STEPS + 1 + (mode is NEXT_STEP)
    np.testing.assert_array_equal(observations[1], untouched[shown_last][1])
    assert not np.array_equal(first, last)
    for number in range(1, 4):
        observations, _, terminations, truncations, infos = env.step(QUIET)
        np.testing.assert_array_equal(observations[1], untouched[shown_last + number][1])
        assert (terminations.any(), truncations.any(), infos) == (False, False, {})
    assert sum(env.stats().replacements.values()) == 1


def test_a_game_killed_while_another_is_reset_shows_in_its_own_next_step(make_vector, untouched):
    env = make_vector(autoreset_mode=DISABLED)
    env.reset()
    env.step(QUIET)
    processes_of(env, 1)["game"].kill()
    observations, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos == {}
    np.testing.assert_array_equal(observations[1], untouched[1][1])
    observations, _, _, truncations, infos = env.step(QUIET)
    assert truncations.tolist() == [False, True]
    np.testing.assert_array_equal(observations[1], untouched[1][1])
    assert infos["_sc2pool.synthetic"].tolist() == [False, True]


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_a_game_killed_in_its_reset_shows_in_the_infos_of_the_reset_only(make_vector, arm, mode):
    env = make_vector(autoreset_mode=mode, task=ShortSaboteur)
    env.reset()
    for _ in range(4):
        env.step(QUIET)
    if mode is SAME_STEP:
        arm("game KILL")
    _, _, _, truncations, infos = env.step(QUIET)
    assert truncations.all(), "the episodes' own end"
    if mode is NEXT_STEP:
        assert infos == {}
        arm("game KILL")
        _, rewards, _, truncations, infos = env.step(QUIET)
        assert (rewards.tolist(), truncations.tolist()) == ([0.0, 0.0], [False, False])
    assert "sc2pool.synthetic" not in infos
    assert infos["_sc2pool.fault"].sum() == 1
    struck = infos["_sc2pool.fault"].argmax()
    assert infos["sc2pool.fault"]["phase"][struck] == "resetting"
    _, _, terminations, truncations, infos = env.step(QUIET)
    assert (terminations.any(), truncations.any(), infos) == (False, False, {})


N = 3
"""The number of envs, which two workers serve; each worker serves at most two envs."""
TWO_EACH = PoolConfig(
    envs_per_worker=2, restart=LENIENT, limits=Limits(step_s=1.0, worker_grace_s=1.0)
)


def workers_of(env: SubprocSC2VecEnv) -> list[int | None]:
    return [instance.worker_pid for instance in env.stats().instances[: env.num_envs]]


def step_until_done(env: SubprocSC2VecEnv, actions: Sequence[int]) -> tuple[Any, list[Any]]:
    """Step until an env is done, at most five times; returns the last step's dones and infos."""
    for _ in range(5):
        _, _, dones, infos = step(env, *actions)
        if dones.any():
            return dones, infos
    raise AssertionError("no fault was noticed")


@pytest.mark.parametrize(("task", "n"), [(Short, N), (ShortBot, 2)], ids=["task", "bot"])
def test_they_are_shared_and_play_the_same(make_env, task, n):
    alone = make_env(task=task, n=n, config=PoolConfig(envs_per_worker=1))
    shared = make_env(task=task, n=n, config=TWO_EACH)
    one, other = record(alone, 12), record(shared, 12)
    assert_same_run(other, one)
    assert np.any(other.dones)
    assert (len(set(workers_of(alone))), len(set(workers_of(shared)))) == (n, n - 1)
    processes_of(shared, 1)["game"].kill()
    _, _, dones, infos = step(shared, *[0] * n)
    assert dones.tolist() == [env == 1 for env in range(n)]
    assert infos[1]["sc2pool.synthetic"]
    assert not step(shared, *[0] * n)[2].any()


@pytest.mark.parametrize("harm", ["game KILL", "game STOP", "game hang"])
def test_a_games_fault_is_its_own(begun, harm):
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
    assert sum(env.stats().replacements.values()) == 1


@pytest.mark.parametrize("harm", ["worker KILL", "worker STOP"])
def test_a_workers_end_is_one_truncation_for_each_of_its_envs(begun, harm):
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
    assert sum(env.stats().replacements.values()) == 2


def test_a_pause_is_of_one_game(begun):
    env = begun(n=2, config=TWO_EACH)
    games = [psutil.Process(instance.pid) for instance in env.stats().instances]
    env.pause([1])
    assert [game.status() == psutil.STATUS_STOPPED for game in games] == [False, True]
    env.resume([1])
    assert not any(game.status() == psutil.STATUS_STOPPED for game in games)
    assert not step(env, 0, 0)[2].any()


def test_spares_live_there_too(begun):
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
