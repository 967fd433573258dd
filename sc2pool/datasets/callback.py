"""`MinariCallback`: an SB3 training's episodes as a Minari dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from sc2pool.datasets import EpisodeCollector, MinariWriter, over_leaves
from sc2pool.errors import ConfigError


class MinariCallback(BaseCallback):
    """Records the complete episodes of all envs, as the policy sees them, during a training.

    `VecNormalize`, if used, must be the outermost wrapper. With `VecNormalize`, the callback
    records observations and rewards before their normalization. An episode's last observation is
    computed from the normalized one, as in SB3's replay buffers. Episodes that are unfinished at
    the training's end are left out. If a training continues with `reset_num_timesteps=False`, the
    episodes that are running at its beginning are left out, too.

        PPO("MlpPolicy", env).learn(10_000, callback=MinariCallback("sc2pool/MoveToBeacon/ppo-v0"))
        minari.load_dataset("sc2pool/MoveToBeacon/ppo-v0")

    Args:
        dataset_id: Minari's name of the dataset.
        keeps_faulty: True to record also episodes that a fault ended. The fault's kind is in the
            episode's metadata, as `fault`.
        resume: True to continue an existing dataset.

    Raises:
        ConfigError: the dataset exists already or has other spaces, the algorithm (such as
            `AsyncPPO`) does not show its steps to callbacks, or a wrapper is around `VecNormalize`.
            The error is raised during the training, not by the constructor.
        MissingPackageError: Minari is not installed. The error is raised when the training begins.
    """

    def __init__(
        self, dataset_id: str, *, keeps_faulty: bool = False, resume: bool = False
    ) -> None:
        super().__init__()
        self._dataset_id = dataset_id
        self._keeps_faulty = keeps_faulty
        self._resume = resume
        self._writer: MinariWriter | None = None

    def _on_training_start(self) -> None:
        env, normalizes = self.training_env, self.model.get_vec_normalize_env()
        if normalizes is not None and env is not normalizes:
            raise ConfigError(
                "MinariCallback: VecNormalize must be the outermost wrapper, but there is a "
                f"{type(env).__name__} around it"
            )
        if self._writer is not None:
            self._writer.close()  # an earlier training failed and left the writer open
            self._resume = True
        self._writer = writer = MinariWriter(
            self._dataset_id,
            env.observation_space,
            env.action_space,
            about={"algorithm_name": type(self.model).__name__},
            resume=self._resume,
        )
        self._collector = EpisodeCollector(writer.add, keeps_faulty=self._keeps_faulty)
        model: Any = self.model
        # A training that continues does not reset the envs.
        self._collector.begin(
            model._last_obs if normalizes is None else model._last_original_obs,
            midway=self.num_timesteps > 0,
        )

    def _on_step(self) -> bool:
        seen, normalizes = self.locals, self.model.get_vec_normalize_env()
        if "new_obs" not in seen:
            raise ConfigError(
                f"MinariCallback: {type(self.model).__name__} does not show its steps to callbacks"
            )
        observations, rewards, infos = seen["new_obs"], seen["rewards"], seen["infos"]
        if normalizes is not None:
            observations = normalizes.get_original_obs()
            rewards = normalizes.get_original_reward()
            infos = [_computed_back(info, normalizes, observations) for info in infos]
        actions = seen.get("clipped_actions", seen["actions"])
        self._collector.step(actions, observations, rewards, seen["dones"], infos)
        return True

    def _on_training_end(self) -> None:
        assert self._writer is not None, "the training has begun"
        self._writer.flush()
        self._writer.close()


def _computed_back(info: dict[str, Any], normalizes: VecNormalize, like: Any) -> dict[str, Any]:
    """The info with the last observation before its normalization, in the dtypes of `like`.

    This observation must be computed, because at an episode's end `VecNormalize` keeps only the
    original of the next episode's first observation.
    """
    if "terminal_observation" not in info:
        return info
    last = normalizes.unnormalize_obs(info["terminal_observation"])
    return {**info, "terminal_observation": over_leaves(_in_dtype_of, last, like)}


def _in_dtype_of(array: Any, like: Any) -> Any:
    return (np.rint(array) if like.dtype.kind in "iu" else np.asarray(array)).astype(like.dtype)
