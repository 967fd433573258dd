"""`SC2GymEnv`: the peers' own checkers, and gymnasium's rules for what they do not check."""

from __future__ import annotations

import asyncio
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as gymnasium_check
from stable_baselines3.common.env_checker import check_env as sb3_check

from sc2pool.errors import ActionError, ClosedError
from sc2pool.tasks.registry import BUILT_IN, resolve
from tests.contract.conftest import without_workers


@without_workers
@pytest.mark.parametrize("task", BUILT_IN)
def test_both_checkers_pass(gym_env, task):
    definition = resolve(task)
    against = {"opponent": definition.scripted} if definition.players == 2 else {}
    env = gym_env(task, **against)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check(env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It can only be told, by a warning, that an env made without `gymnasium.make` has no spec.
        warnings.filterwarnings("ignore", message=".*not having a spec.*")
        gymnasium_check(env, skip_close_check=True)
    env.close()
    env.close()


@without_workers
def test_an_episode_ends_without_autoreset(gym_env):
    env = gym_env(max_loops=24)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    for step in range(1, 4):
        observation, reward, terminated, truncated, info = env.step(0)
        assert isinstance(reward, float)
        assert (terminated, info) == (False, {})
        assert truncated == (step == 3), "24 loops, eight a step"
    assert env.observation_space.contains(observation)
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert env.observation_space.contains(env.reset()[0])


@without_workers
def test_an_action_outside_the_space_is_told(gym_env):
    env = gym_env()
    env.reset()
    for wrong in (8, -1, 0.5, None, [0]):
        with pytest.raises(ActionError, match=r"Discrete\(8\)"):
            env.step(wrong)
    env.step(np.int64(7))


def test_it_works_where_an_event_loop_runs(gym_env):
    async def notebook_cell() -> None:
        env = gym_env()
        env.reset()
        env.step(0)

    asyncio.run(notebook_cell())


@without_workers
def test_closed_is_closed(gym_env):
    env = gym_env()
    env.reset()
    env.close()
    for call in (env.reset, lambda: env.step(0)):
        with pytest.raises(ClosedError):
            call()
