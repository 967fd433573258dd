"""`SC2GymEnv`: the peers' own checkers, and gymnasium's rules for what they do not check."""

from __future__ import annotations

import asyncio
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as gymnasium_check
from stable_baselines3.common.env_checker import check_env as sb3_check

from sc2pool import SC2GymEnv
from sc2pool.errors import ActionError, ClosedError, ConfigError
from sc2pool.tasks.registry import BUILT_IN, resolve


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


def test_an_episode_ends_without_autoreset(gym_env):
    env = gym_env()
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    over = False
    for _ in range(240):
        observation, reward, terminated, truncated, info = env.step(0)
        assert isinstance(reward, float)
        assert (terminated, info) == (False, {})
        over = truncated
    assert over, "1,920 loops, eight a step"
    assert env.observation_space.contains(observation)
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert env.observation_space.contains(env.reset()[0])


def test_a_seed_repeats_this_and_the_later_episodes(gym_env):
    env = gym_env()
    first = [env.reset(seed=4)[0], env.step(3)[0], env.reset()[0]]
    again = [env.reset(seed=4)[0], env.step(3)[0], env.reset()[0]]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], env.reset(seed=5)[0])


def test_returned_observations_are_not_written_again(gym_env):
    env = gym_env()
    observation, _ = env.reset(seed=1)
    was = observation.copy()
    env.step(0)
    np.testing.assert_array_equal(observation, was)


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


def test_closed_is_closed(gym_env):
    env = gym_env()
    env.reset()
    env.close()
    for call in (env.reset, lambda: env.step(0)):
        with pytest.raises(ClosedError):
            call()


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"task": "Chess"}, "unknown task"),
        ({"game": "/no/such/place"}, "does not exist"),
        ({"render_mode": "ansi"}, r"render_mode must be None or one of \['human', 'rgb_array'\]"),
    ],
    ids=str,
)
def test_wrong_input(standin_dir, keywords, told):
    with pytest.raises(ConfigError, match=told):
        SC2GymEnv(**{"game": standin_dir, **keywords})
