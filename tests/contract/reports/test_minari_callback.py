"""`MinariCallback` records the episodes of a training."""

from __future__ import annotations

import minari
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

from sc2pool import MinariCallback
from sc2pool.errors import ConfigError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting

pytestmark = without_workers

ID = "sc2pool/Test/training-v0"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("algorithm", [PPO, DQN])
def test_a_training(vec, algorithm, normalized):
    env = vec(lambda: Counting(3), lambda: Counting(5))
    if normalized:
        env = VecNormalize(env)
    more = {"n_steps": 10, "batch_size": 20} if algorithm is PPO else {"learning_starts": 5}
    model = algorithm("MlpPolicy", env, device="cpu", **more)
    model.learn(40, callback=MinariCallback(ID))
    dataset = minari.load_dataset(ID)
    lengths = sorted(len(episode) for episode in dataset.iterate_episodes())
    assert lengths == [3] * 6 + [5] * 4
    for episode in dataset.iterate_episodes():
        assert episode.observations.dtype == np.float32
        seen = np.arange(len(episode) + 1)[:, None]
        np.testing.assert_allclose(episode.observations, seen, rtol=1e-5)
        np.testing.assert_array_equal(episode.observations[:-1], seen[:-1])


def test_parts_that_are_normalized_and_parts_that_are_not(vec):
    class Parts(Counting):
        observation_space = spaces.Dict(
            plain=Counting.observation_space,
            whole=spaces.Box(0, 255, (1,), np.uint8),
            kind=spaces.Discrete(9),
        )

        def observation(self):
            count = self.count
            return {
                "plain": super().observation(),
                "whole": np.array([50 + count], np.uint8),
                "kind": count,
            }

    env = VecNormalize(vec(lambda: Parts(3)), norm_obs_keys=["plain", "whole"])
    model = PPO("MultiInputPolicy", env, n_steps=6, batch_size=6, device="cpu")
    model.learn(6, callback=MinariCallback(ID))
    for episode in minari.load_dataset(ID).iterate_episodes():
        seen = episode.observations
        np.testing.assert_allclose(seen["plain"], np.arange(4)[:, None], rtol=1e-5)
        assert seen["plain"].dtype == np.float32
        assert (seen["whole"].tolist(), seen["whole"].dtype) == ([[50], [51], [52], [53]], np.uint8)
        assert seen["kind"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("normalized", [False, True])
def test_a_training_that_goes_on_begins_within_an_episode(vec, normalized):
    env = vec(lambda: Counting(5))
    if normalized:
        env = VecNormalize(env)
    model = PPO("MlpPolicy", env, n_steps=7, batch_size=7, device="cpu")
    callback = MinariCallback(ID)
    model.learn(7, callback=callback)
    model.learn(14, callback=callback, reset_num_timesteps=False)
    episodes = [episode.observations for episode in minari.load_dataset(ID).iterate_episodes()]
    # The dataset has the episodes of the env steps 0 to 5, 10 to 15 and 15 to 20.
    assert [len(episode) - 1 for episode in episodes] == [5] * 3
    assert all((episode[:-1, 0] == range(5)).all() for episode in episodes)


def test_a_wrapper_around_the_one_that_normalizes(vec):
    env = VecFrameStack(VecNormalize(vec(lambda: Counting(3))), 2)
    model = PPO("MlpPolicy", env, n_steps=6, batch_size=6, device="cpu")
    with pytest.raises(ConfigError, match=r"VecNormalize must be the outermost .* VecFrameStack"):
        model.learn(6, callback=MinariCallback(ID))


def test_a_dataset_that_is_there(vec):
    env = vec(lambda: Counting(3))
    model = PPO("MlpPolicy", env, n_steps=6, batch_size=6, device="cpu")
    model.learn(6, callback=MinariCallback(ID))
    with pytest.raises(ConfigError, match=r"is in .* already"):
        model.learn(6, callback=MinariCallback(ID))
    model.learn(6, callback=MinariCallback(ID, resume=True))
    assert minari.load_dataset(ID).total_episodes == 4
