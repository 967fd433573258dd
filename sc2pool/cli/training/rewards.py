"""Rewards as the algorithm gets them: scaled, if the hyperparameters say so.

PPO's value network is slow to reach returns of thousands, and until then learns nothing of use from
the advantages. Rule: only the algorithm sees scaled rewards; logs, curves and evaluations have the
task's.
"""

from __future__ import annotations

from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn


class ScaledRewards(VecEnvWrapper):
    """Multiplies all rewards by `scale`."""

    def __init__(self, env: VecEnv, scale: float) -> None:
        super().__init__(env)
        self._scale = scale

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards * self._scale, dones, infos
