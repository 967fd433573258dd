"""`MinariCallback`: an SB3 training's episodes as a Minari dataset."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.datasets.collector import EpisodeCollector
from sc2pool.datasets.minari_writer import MinariWriter
from sc2pool.errors import ConfigError


class MinariCallback(BaseCallback):
    """Records the whole episodes of all envs, as the policy sees them, while it learns.

    With `VecNormalize` the observations and rewards are those before it. Episodes that are not over
    when the training ends are left out.

        PPO("MlpPolicy", env).learn(10_000, callback=MinariCallback("sc2pool/MoveToBeacon/ppo-v0"))
        minari.load_dataset("sc2pool/MoveToBeacon/ppo-v0")

    Args:
        dataset_id: Minari's name of the dataset.
        keeps_faulty: also the episodes that a fault cut short; their metadata has its kind, as
            `fault`.
        resume: go on with a dataset that is there.

    Raises:
        ConfigError: when the training begins: the dataset is there already, or has other spaces;
            the algorithm does not show its steps to callbacks, as `AsyncPPO`.
        MissingPackageError: Minari is not installed.
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
        env = self.training_env
        self._writer = writer = MinariWriter(
            self._dataset_id,
            env.observation_space,
            env.action_space,
            about={"algorithm_name": type(self.model).__name__},
            resume=self._resume or self._writer is not None,
        )
        self._collector = EpisodeCollector(writer.add, keeps_faulty=self._keeps_faulty)
        normalizes = self.model.get_vec_normalize_env()
        model: Any = self.model
        self._collector.begin(model._last_obs if normalizes is None else model._last_original_obs)

    def _on_step(self) -> bool:
        seen, normalizes = self.locals, self.model.get_vec_normalize_env()
        if "new_obs" not in seen:
            raise ConfigError(
                f"MinariCallback: {type(self.model).__name__} does not show its steps to callbacks"
            )
        observations, rewards = seen["new_obs"], seen["rewards"]
        if normalizes is not None:
            observations = normalizes.get_original_obs()
            rewards = normalizes.get_original_reward()
        actions = seen.get("clipped_actions", seen["actions"])
        self._collector.step(actions, observations, rewards, seen["dones"], seen["infos"])
        return True

    def _on_training_end(self) -> None:
        assert self._writer is not None, "the training has begun"
        self._writer.flush()
