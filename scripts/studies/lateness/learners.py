"""The ways to learn that are compared; they differ in what happens to the game in an update.

The length of an update is fixed: SB3's `train()` with one epoch, repeated until the time is up. So
it is gradient descent all the time, as in a long update, and not a sleep, which would leave the
processor to the games.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sc2pool import AsyncPPO, PauseDuringTraining


class LongUpdates(OnPolicyAlgorithm):
    """Mixed into an algorithm: its updates take at least `update_s` seconds."""

    update_s = 0.0
    """0 for no update at all."""

    def train(self) -> None:
        began_s = time.monotonic()
        while time.monotonic() - began_s < self.update_s:
            super().train()
        self.updates_s.append(time.monotonic() - began_s)

    @property
    def updates_s(self) -> list[float]:
        """How long each update took."""
        durations: list[float] = self.__dict__.setdefault("_updates_s", [])
        return durations


class PlainPPO(LongUpdates, PPO):
    """SB3's own."""


class LongAsyncPPO(LongUpdates, AsyncPPO):
    """Its actor continues to play."""


@dataclass(frozen=True)
class Learner:
    """One way to learn.

    Attributes:
        algorithm: what learns.
        callbacks: made for each training.
        updates: False for no updates at all.
    """

    name: str
    algorithm: Callable[..., LongUpdates]
    callbacks: Callable[[], list[BaseCallback]] = list
    updates: bool = True

    def make(self, policy: str, env: Any, *, n_steps: int, update_s: float) -> LongUpdates:
        """A model, ready to learn."""
        model = self.algorithm(
            policy,
            env,
            n_steps=n_steps,
            batch_size=n_steps * env.num_envs,
            n_epochs=1,
            seed=1,
            device="cpu",
        )
        model.update_s = update_s if self.updates else 0.0
        return model


PLAY = Learner("playing only", PlainPPO, updates=False)
"""Without a learner: the shortest gaps that are possible."""
LEARNERS = (
    PLAY,
    Learner("plain PPO", PlainPPO),
    Learner("pause gate", PlainPPO, lambda: [PauseDuringTraining()]),
    Learner("AsyncPPO", LongAsyncPPO),
)
