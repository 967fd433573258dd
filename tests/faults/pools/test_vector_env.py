"""A fault as `SC2VectorEnv` shows it: one marked truncation, in each autoreset mode."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from fault_pools import SEED, processes_of
from fault_tasks import Saboteur, ShortSaboteur
from gymnasium.vector import AutoresetMode

from sc2pool import SC2VectorEnv
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
    """What both envs show in ten steps that nothing disturbs."""
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
    assert sum(env.stats().recycles.values()) == 1


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


def test_a_killed_worker_of_an_env_is_one_truncation_too(make_vector):
    with closing(SC2VectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)) as env:
        env.reset(seed=0)
        os.kill(env.stats().instances[0].worker_pid, signal.SIGKILL)
        _, _, _, truncations, infos = env.step(QUIET)
        assert truncations.tolist() == [True, False]
        assert infos["sc2pool.fault"]["kind"][0] == "worker-exited"
        _, rewards, _, truncations, infos = env.step(QUIET)
        assert rewards.tolist() == [0.0, 1.0]
        assert (truncations.any(), infos) == (False, {})
