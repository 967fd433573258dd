"""VecNormalize's statistics are constant within a rollout, and SB3's own afterwards."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from sc2pool.realtime.async_ppo.actor import FrozenStatistics, frozen


def figures(statistics):
    return [statistics.mean.tolist(), statistics.var.tolist(), statistics.count]


def test_statistics_change_in_commit_and_like_sb3s():
    generator = np.random.default_rng(1)
    theirs = RunningMeanStd(shape=(3,))
    theirs.update(generator.normal(2.0, 3.0, (20, 3)))
    ours, before = FrozenStatistics(theirs), figures(theirs)
    for _ in range(5):
        batch = generator.normal(size=(4, 3))
        ours.update(batch)
        theirs.update(batch)
    assert figures(ours) == before
    ours.commit()
    assert figures(ours) == figures(theirs)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_is_of_sb3s_class_without_uncommitted_samples(how):
    ours = FrozenStatistics(RunningMeanStd(shape=(2,)))
    ours.update(np.ones((3, 2)))
    copied = how(ours)
    assert type(copied) is RunningMeanStd
    assert figures(copied) == figures(RunningMeanStd(shape=(2,)))


def test_a_wrapped_env_has_sb3s_statistics_afterwards():
    env = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    other = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    env.reset(), other.reset()
    with frozen(env) as commit:
        for index in range(7):
            seen, *_ = env.step(np.array([0, 1]))
            other.step(np.array([0, 1]))
            np.testing.assert_allclose(seen, env.normalize_obs(env.get_original_obs()))
            if index == 3:
                assert env.obs_rms.count != other.obs_rms.count
                commit()
                assert figures(env.obs_rms) == figures(other.obs_rms)
    assert type(env.obs_rms) is type(env.ret_rms) is RunningMeanStd
    assert figures(env.obs_rms) == figures(other.obs_rms)
    assert env.ret_rms.var == other.ret_rms.var


def test_without_normalisation_there_is_nothing_to_do():
    with frozen(None) as commit:
        commit()
