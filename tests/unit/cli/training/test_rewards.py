"""The algorithm's rewards are scaled; the recorded returns are the task's."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool.cli.training.rewards import ScaledRewards


def test_scaled_rewards() -> None:
    env = ScaledRewards(VecMonitor(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)), 0.01)
    env.reset()
    episodes = []
    while not episodes:
        _, rewards, _, infos = env.step(np.zeros(2, int))
        np.testing.assert_allclose(rewards, 0.01, rtol=1e-6)
        episodes = [info["episode"] for info in infos if "episode" in info]
    assert episodes[0]["r"] == pytest.approx(episodes[0]["l"])
    env.close()
