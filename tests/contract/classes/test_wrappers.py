"""Clause 11: SB3's wrappers and algorithms on top."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from tests.contract.conftest import without_workers
from tests.contract.envs import Answering, Counting, Sampling

pytestmark = without_workers


def test_vec_monitor(vec):
    monitored = VecMonitor(vec(partial(Counting, 2), partial(Counting, 3)))
    monitored.reset()
    ended = []
    for _ in range(6):
        infos = monitored.step([0, 0])[3]
        ended += [
            (info["episode"]["l"], info["episode"]["r"]) for info in infos if "episode" in info
        ]
    assert sorted(ended) == [(2, 3.0)] * 3 + [(3, 6.0)] * 2


def test_vec_monitor_warns_of_a_monitor_below(vec):
    made = vec(lambda: Monitor(Counting()))
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(made)
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(VecNormalize(made))


def test_vec_normalize(vec):
    made = vec(*[partial(Counting, 4)] * 2)
    normalized = VecNormalize(made)
    normalized.reset()
    for step in range(1, 9):
        _, _, dones, infos = normalized.step([0, 0])
        raw = normalized.get_original_obs()
        assert raw.tolist() == [[float(step % 4)]] * 2, "SB3 changes its copy, not ours"
        for done, info in zip(dones, infos, strict=True):
            assert ("terminal_observation" in info) == done
    assert normalized.obs_rms.count > 8
    assert normalized.get_attr("length") == [4, 4]
    with pytest.raises(AttributeError):
        _ = normalized.count_that_is_nowhere


def test_vec_frame_stack(vec):
    stacked = VecFrameStack(vec(*[partial(Counting, 3)] * 2), n_stack=3)
    assert stacked.reset().tolist() == [[0, 0, 0]] * 2
    assert stacked.step([0, 0])[0].tolist() == [[0, 0, 1]] * 2
    assert stacked.step([0, 0])[0].tolist() == [[0, 1, 2]] * 2
    observations, _, _, infos = stacked.step([0, 0])
    assert observations.tolist() == [[0, 0, 0]] * 2
    assert [info["terminal_observation"].tolist() for info in infos] == [[1, 2, 3]] * 2


def test_vec_check_nan(vec):
    checked = VecCheckNan(vec(partial(Answering, observation=[np.inf])), raise_exception=True)
    checked.reset()
    with pytest.raises(ValueError, match="found inf in observations"):
        checked.step([0])


def test_vec_transpose_image(vec):
    image = spaces.Box(0, 255, (36, 40, 3), np.uint8)
    transposed = VecTransposeImage(vec(*[partial(Sampling, image, spaces.Discrete(2))] * 2))
    assert transposed.reset().shape == (2, 3, 36, 40)
    assert transposed.step([0, 0])[0].shape == (2, 3, 36, 40)


def test_vec_extract_dict_obs(vec):
    space = spaces.Dict(a=spaces.Box(0, 1, (2,)), b=spaces.Discrete(3))
    extracted = VecExtractDictObs(vec(*[partial(Sampling, space, spaces.Discrete(2))] * 2), "a")
    assert extracted.reset().shape == (2, 2)
    assert extracted.step([0, 0])[0].shape == (2, 2)


def test_goals_are_rewarded_by_the_envs_own_method(vec):
    made = vec(partial(BitFlippingEnv, n_bits=3), partial(BitFlippingEnv, n_bits=3))
    observations = made.reset()
    achieved, desired = observations["achieved_goal"], observations["desired_goal"]
    (rewards,) = made.env_method("compute_reward", achieved, desired, {}, indices=[0])
    assert rewards.shape == (2,)


def test_ppo_learns_on_a_task_without_a_warning(vec_task):
    monitored = VecMonitor(vec_task(seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PPO("MlpPolicy", monitored, n_steps=16, batch_size=32, n_epochs=1, device="cpu")
        model.learn(64)
    assert model.num_timesteps == 64
