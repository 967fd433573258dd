"""The pool by itself, with workers; what differs by system, in both variants of it."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial

import gymnasium
import numpy as np
import psutil
import pytest

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import gym_specs
from sc2pool.errors import ClosedError, ConfigError
from sc2pool.pool.pool import Pool


@pytest.fixture
def pool():
    env_fns = [partial(gymnasium.make, "CartPole-v1")] * 2
    with closing(Pool(gym_specs(env_fns), one_book=False, config=PoolConfig())) as made:
        yield made


portable = pytest.mark.parametrize("variant", ["portable"], indirect=True)
"""`test_rows` and the contract play the variant of this system."""


def kill_worker(pool: Pool, env: int) -> None:
    psutil.Process(pool.stats().instances[env].worker_pid).kill()


@portable
def test_it_plays_the_very_episodes_of_the_envs(variant, pool):
    alone = [gymnasium.make("CartPole-v1") for _ in range(2)]
    observations = [env.reset(seed=seed)[0] for env, seed in zip(alone, (3, 4), strict=True)]
    np.testing.assert_array_equal(pool.reset([3, 4]).observations, observations)
    for step in range(200):
        pool.send([step % 2, 1])
        batch = pool.recv()
        for row, env in enumerate(alone):
            observation, reward, terminated, truncated, _ = env.step((step % 2, 1)[row])
            flags = bool(batch.terminated[row]), bool(batch.truncated[row])
            assert (batch.rewards[row], *flags) == (reward, terminated, truncated)
            if terminated or truncated:
                np.testing.assert_array_equal(batch.final_observations[row], observation)
                observation, _ = env.reset()
                assert batch.reset_infos[row] == {}
            np.testing.assert_array_equal(batch.observations[row], observation)
    assert pool.stats().env_steps == 400
    assert pool.stats().episodes > 10


@portable
def test_a_killed_worker_is_replaced(variant, pool):
    pool.reset()
    kill_worker(pool, 1)
    pool.send([0, 0])
    batch = pool.recv()
    assert batch.truncated.tolist() == [False, True]
    assert batch.infos[1]["sc2pool.synthetic"] is True
    pool.send([0, 0])
    assert not pool.recv().truncated.any()


def test_poll_without_replies_leaves_the_records_alone(variant, pool, monkeypatch, wait_for):
    pool.reset([1, 2])
    pool.send(np.zeros(2, np.int64))
    pool.recv()
    polls = []
    loop = pool._runtime.loop
    wait_until = loop.wait_until
    monkeypatch.setattr(loop, "wait_until", lambda *a, **k: polls.append(1) or wait_until(*a, **k))
    for _ in range(3):
        pool.send(np.zeros(2, np.int64))
        loop._next_poll_s = 0.0  # it is due
        assert not pool.recv().terminated.any()
    if variant == "portable":
        assert polls, "it cannot tell, so it polls"
        return
    assert not polls
    kill_worker(pool, 1)
    wait_for(loop._waiter.has_more)
    polls.clear()
    pool.send(np.zeros(2, np.int64))
    loop._next_poll_s = 0.0
    assert pool.recv().truncated.tolist() == [False, True]
    assert polls


def test_a_rebuilt_env_with_other_spaces_ends_the_pool(tmp_path):
    def of_changing_size() -> gymnasium.Env:
        (tmp_path / str(os.getpid())).touch()
        is_first = len(list(tmp_path.iterdir())) == 1
        return gymnasium.make("CartPole-v1" if is_first else "Acrobot-v1")

    specs = gym_specs([of_changing_size])
    with closing(Pool(specs, one_book=False, config=PoolConfig())) as pool:
        pool.reset()
        kill_worker(pool, 0)
        pool.send([0])
        with pytest.raises(ConfigError, match=r"env 0: the spaces have changed.*\(6,\).*\(4,\)"):
            pool.recv()


def test_a_step_that_is_closed_under_says_so(pool, monkeypatch):
    """Another thread may close the pool just when the fast path gives a step to the general one."""

    pool.reset()
    pool.send(np.zeros(2, np.int64))
    monkeypatch.setattr(pool._stepping, "recv_plain", pool.close)
    with pytest.raises(ClosedError):
        pool.recv()
