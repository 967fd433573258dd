"""`MinariCallback` records what a training plays."""

from __future__ import annotations

import minari
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecNormalize

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
    plain = vec(lambda: Counting(3))
    seen = [plain.reset()[0]]
    for _ in range(2):
        seen.append(plain.step([0])[0][0])
    for episode in dataset.iterate_episodes():
        np.testing.assert_array_equal(episode.observations[:3], seen)


def test_a_dataset_that_is_there(vec):
    env = vec(lambda: Counting(3))
    model = PPO("MlpPolicy", env, n_steps=6, batch_size=6, device="cpu")
    model.learn(6, callback=MinariCallback(ID))
    with pytest.raises(ConfigError, match=r"is in .* already"):
        model.learn(6, callback=MinariCallback(ID))
    model.learn(6, callback=MinariCallback(ID, resume=True))
    assert minari.load_dataset(ID).total_episodes == 4
