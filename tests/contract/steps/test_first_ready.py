"""Tests of the pool's own methods `pool.send(actions, envs)` and `pool.recv(min_ready, …)`.

A trainer steps those envs first that are ready first. Env 0 is fast; env 1's step ends when a file
exists. The pool of a cluster is checked by a test with Ray.
"""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from itertools import cycle, islice

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from sc2pool import DummySC2VecEnv, SubprocSC2VecEnv
from sc2pool.errors import ConfigError
from tests.contract.envs import Counting, Gated
from tests.support.vec_pool import TASK, N, check_vec_pool

AT_ONCE_S = 5.0
"""Much less than the time for which a `Gated` env waits for its file."""


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    return tmp_path_factory.mktemp("first ready") / "gate"


@pytest.fixture(scope="module")
def shared(gate):
    with closing(SubprocSC2VecEnv([Counting, partial(Gated, str(gate)), Counting])) as made:
        yield made.pool


@pytest.fixture
def pool(shared, gate):
    """A pool whose envs are at the beginning of an episode, before the first step."""
    shared.reset()
    gate.unlink(missing_ok=True)
    shared.set_attr(range(3), "actions", [])
    yield shared
    gate.touch()


def test_env_sends_to_some_games_and_receives_those_that_are_ready(standin_dir):
    """Each match gives two envs of the `VecEnv`, one for each of its games."""
    with closing(SubprocSC2VecEnv("MarineDuel", n=2, game=standin_dir)) as env:
        env.reset()
        env.send([0, 0], [1])
        with pytest.raises(AlreadyPendingCallError):
            env.send([0, 0], [1])
        batch = env.recv()
        assert (batch.envs.tolist(), batch.rewards.shape) == ([1], (2,))
        env.send([0, 0, 0, 0])
        first = env.recv(min_ready=1, timeout_s=AT_ONCE_S)
        left = 2 - len(first.envs)
        assert len(first.rewards) == 2 * len(first.envs) > 0
        if left:
            assert len(env.recv().envs) == left
        with pytest.raises(NoAsyncCallError):
            env.recv()


@pytest.mark.parametrize("envs", [[3], [-1], [0, 0]], ids=repr)
def test_envs_that_are_none_are_told_and_nothing_is_sent(pool, envs):
    with pytest.raises(ConfigError, match=r"there is no|named twice"):
        pool.send([0] * len(envs), envs)
    assert pool.pending == 0


def test_ready_env_is_received_and_steps_alone(pool, gate):
    pool.send([0, 0, 0])
    seen = []
    while len(seen) < 4 or len({env for env, _ in seen}) < 2:
        batch = pool.recv(min_ready=1, timeout_s=AT_ONCE_S)
        assert len(batch.envs) >= 1
        seen += [(int(e), float(o[0])) for e, o in zip(batch.envs, batch.observations, strict=True)]
        assert batch.observations.shape == (len(batch.envs), 1)
        pool.send([0] * len(batch.envs), batch.envs)
    assert {env for env, _ in seen} == {0, 2}
    # Episodes are three steps long; a new episode begins with observation 0.
    for env in (0, 2):
        counts = [count for other, count in seen if other == env]
        assert counts == list(islice(cycle([1, 2, 0]), len(counts)))
    gate.touch()
    (row,) = np.flatnonzero(pool.recv().envs == 1)
    assert row == 1


@pytest.mark.timing
def test_fewer_come_when_the_time_is_up(pool, gate):
    pool.send([0, 0, 0])
    began_s = time.monotonic()
    batch = pool.recv(min_ready=3, timeout_s=0.3)
    assert time.monotonic() - began_s < AT_ONCE_S
    assert set(batch.envs.tolist()) <= {0, 2}
    rest = pool.recv(min_ready=1, timeout_s=0.0) if len(batch.envs) == 2 else None
    if rest is not None:
        assert rest.envs.tolist() == []
        assert rest.observations.shape == (0, 1)
        assert (rest.rewards.shape, rest.infos) == ((0,), [])
    gate.touch()
    assert 1 in pool.recv().envs


def test_more_than_are_pending_is_all_of_them(pool, gate):
    pool.send([0], [2])
    assert pool.recv(min_ready=99).envs.tolist() == [2]


def test_actions_go_to_the_envs_they_were_sent_to_and_rows_come_ascending(pool, gate):
    gate.touch()
    pool.send([4, 3], [2, 0])
    batch = pool.recv()
    assert batch.envs.tolist() == [0, 2]
    assert batch.envs.dtype == np.int64
    assert pool.call([0, 1, 2], "get_attr", "actions") == [[3], [], [4]]


def test_a_task_is_stepped_like_that_too(vec_task):
    """An env that is stepped alone plays exactly like an env that is stepped with the others."""
    env = vec_task(seed=3)
    in_sync = [env.reset()] + [env.step(np.zeros(2, np.int64))[0] for _ in range(6)]
    env.seed(3)
    env.reset()
    counts = [0, 0]
    for envs in ([1], [1], [0, 1], [0], [1], [0]):
        env.pool.send([0] * len(envs), envs)
        batch = env.pool.recv()
        assert batch.envs.tolist() == envs
        for row, index in enumerate(envs):
            counts[index] += 1
            np.testing.assert_array_equal(batch.observations[row], in_sync[counts[index]][index])
    assert counts == [3, 4]


@pytest.mark.parametrize("env_class", [SubprocSC2VecEnv, DummySC2VecEnv])
def test_it_keeps_the_contract(env_class, standin_dir):
    check_vec_pool(lambda: env_class(TASK, n=N, game=standin_dir, render_mode="rgb_array").pool)
