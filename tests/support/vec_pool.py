"""Checks the promises of `sc2pool.pool.vec_pool.VecPool`, which every pool must keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool.errors import ActionError, ClosedError, ConfigError
from sc2pool.pool.vec_pool import VecPool

TASK = "DefeatRoaches"
"""A task with action masks; the checks read only its attribute `step_mul`."""
N = 2
STEPS = 6


def check_vec_pool(make: Callable[[], VecPool]) -> None:
    """Check a pool of `N` games of `TASK` without a seed; raises AssertionError.

    Args:
        make: A function that makes the pool; `check_vec_pool` closes the pool.
    """
    pool = make()
    try:
        assert (pool.n, pool.rows, pool.n_rows, pool.closed) == (N, 1, N, False)
        assert pool.game_version
        with pytest.raises(ResetNeeded):
            pool.send(_actions(pool))
        _check_steps(pool)
        _check_calls(pool)
    finally:
        pool.close()
        pool.close()
    assert pool.closed
    with pytest.raises(ClosedError):
        pool.reset()


def _actions(pool: VecPool) -> Sequence[object]:
    pool.action_space.seed(1)
    return np.array([pool.action_space.sample() for _ in range(N)])


def _check_steps(pool: VecPool) -> None:
    runs = []
    for seed in (5, 5, 6):
        pool.seed(seed)
        first = pool.reset()
        assert list(first.envs) == list(range(N))
        assert all(info is not None for info in first.reset_infos)
        run = [first.observations]
        for _ in range(STEPS):
            pool.send(_actions(pool))
            batch = pool.recv()
            assert batch.rewards.shape == batch.terminated.shape == batch.truncated.shape == (N,)
            assert len(batch.infos) == N
            run.append(batch.observations)
        runs.append(np.stack(run))
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[1], runs[2])
    with pytest.raises(ActionError):
        pool.send(np.full_like(_actions(pool), 10**6))
    with pytest.raises(NoAsyncCallError):
        pool.recv()
    pool.send(_actions(pool))
    with pytest.raises(AlreadyPendingCallError):
        pool.send(_actions(pool))
    with pytest.raises(AlreadyPendingCallError):
        pool.pause()
    pool.reset()  # the reset drops the step that was sent
    pool.void_episodes()


def _check_calls(pool: VecPool) -> None:
    every = range(N)
    for row in every:
        mask = pool.action_mask(row)
        assert mask is not None and mask.dtype == bool
    pool.set_attr([1], "step_mul", 4)
    values = pool.call(every, "get_attr", "step_mul")
    assert values[1] == 4 != values[0]
    assert pool.call([1, 0], "get_attr", "step_mul") == values[::-1]
    with pytest.raises(AttributeError):
        pool.call(every, "get_attr", "no_such_attribute")
    for none in (-1, N):
        with pytest.raises(ConfigError, match=f"the pool's envs are 0 to 1, there is no {none}"):
            pool.pause([none])
    pool.pause()
    pool.resume([0])
    pool.resume()
    assert len(pool.render(every)) == N
    pool.show_figures({"train/loss": 0.5})
    stats = pool.stats()
    assert [row.seat for row in stats.instances] == ["env 0", "env 1"]
    assert stats.env_steps >= 3 * STEPS * N
    pool.send(_actions(pool))
    pool.recv()
