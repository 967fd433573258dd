"""The pool by itself, with workers, in both variants of what differs by system."""

from __future__ import annotations

import os
import signal

import gymnasium
import numpy as np
import pytest

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.envs.specs import gym_specs
from sc2pool.errors import ClosedError, ConfigError
from sc2pool.pool.pool import Pool

pytestmark = pytest.mark.usefixtures("variant")


@pytest.fixture
def pool():
    def telling() -> gymnasium.Env:
        env = gymnasium.make("CartPole-v1")
        env.unwrapped.pid = os.getpid()
        return env

    env_fns = [telling] * 2
    made = Pool(gym_specs(env_fns), one_book=False, config=PoolConfig())
    yield made
    made.close()


def test_it_plays_the_very_episodes_of_the_envs(pool):
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


def test_a_killed_worker_is_replaced(pool):
    pool.reset()
    (pid,) = pool.call([1], "get_attr", "pid")
    os.kill(pid, signal.SIGKILL)
    pool.send([0, 0])
    batch = pool.recv()
    assert batch.truncated.tolist() == [False, True]
    assert batch.infos[1]["sc2pool.synthetic"] is True
    pool.send([0, 0])
    assert not pool.recv().truncated.any()


def test_poll_without_replies_leaves_the_records_alone(pool, variant, monkeypatch):
    pool.reset([1, 2])
    pool.send(np.zeros(2, np.int64))
    pool.recv()
    polls = []
    wait_until = pool._loop.wait_until
    monkeypatch.setattr(pool._loop, "wait_until", lambda *a: polls.append(1) or wait_until(*a))
    for _ in range(3):
        pool.send(np.zeros(2, np.int64))
        pool._loop._next_poll_s = 0.0  # it is due
        assert not pool.recv().terminated.any()
    if variant == "portable":
        assert polls, "it cannot tell, so it polls"
        return
    assert not polls
    os.kill(pool.call([1], "get_attr", "pid")[0], signal.SIGKILL)
    deadline = Deadline.after(60)
    while not pool._loop._waiter.has_more():
        assert not deadline.expired()
    polls.clear()
    pool.send(np.zeros(2, np.int64))
    pool._loop._next_poll_s = 0.0
    assert pool.recv().truncated.tolist() == [False, True]
    assert polls


def test_a_rebuilt_env_with_other_spaces_ends_the_pool(tmp_path):
    def of_changing_size() -> gymnasium.Env:
        (tmp_path / str(os.getpid())).touch()
        env = gymnasium.make("CartPole-v1" if len(list(tmp_path.iterdir())) == 1 else "Acrobot-v1")
        env.unwrapped.pid = os.getpid()
        return env

    pool = Pool(gym_specs([of_changing_size]), one_book=False, config=PoolConfig())
    try:
        pool.reset()
        os.kill(pool.call([0], "get_attr", "pid")[0], signal.SIGKILL)
        pool.send([0])
        with pytest.raises(ConfigError, match=r"env 0: the spaces have changed.*\(6,\).*\(4,\)"):
            pool.recv()
    finally:
        pool.close()


def test_closed_is_closed(pool):
    pool.close()
    assert pool.closed
    with pytest.raises(ClosedError):
        pool.reset()


def test_a_step_that_is_closed_under_says_so(pool, monkeypatch):
    """Another thread may close the pool just when the fast path gives a step to the general one."""

    pool.reset()
    pool.send(np.zeros(2, np.int64))
    monkeypatch.setattr(pool._lockstep, "recv", pool.close)
    with pytest.raises(ClosedError):
        pool.recv()
