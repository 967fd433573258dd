"""Envs and models for the tests of `AsyncPPO`; a module, so the child process can import it."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO

from sc2pool import AsyncPPO

SMALL = {"net_arch": [8]}


class Counting(gymnasium.Env[Any, int]):
    """Observes the number of steps since its creation; an episode is truncated after five."""

    observation_space: spaces.Space[Any] = spaces.Box(0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, fails_at: int | None = None) -> None:
        self._fails_at = fails_at
        self._steps = 0
        self.resets = 0

    def observe(self) -> Any:
        return np.array([self._steps], np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._fails_at:
            raise ZeroDivisionError("the env has failed")
        truncated = self._steps % 5 == 0
        return self.observe(), 1.0, False, truncated, {"played": int(action), "at": self._steps}


class CountingDict(Counting):
    """The same with two observations."""

    observation_space = spaces.Dict(
        count=spaces.Box(0, np.inf, (1,), np.float32), odd=spaces.Discrete(2)
    )

    def observe(self) -> Any:
        return {"count": super().observe(), "odd": self._steps % 2}


class SlowUpdates(AsyncPPO):
    """Sleeps before each update."""

    update_s = 0.2

    def train(self) -> None:
        time.sleep(self.update_s)
        super().train()


class VerySlowUpdates(SlowUpdates):
    update_s = 0.6
    """13 game loops in real time."""


class SlowPPO(PPO):
    """SB3's PPO with the same sleep."""

    def train(self) -> None:
        time.sleep(VerySlowUpdates.update_s)
        super().train()


class FailingUpdates(AsyncPPO):
    """Raises in the second update."""

    def train(self) -> None:
        if self._n_updates:
            raise FloatingPointError("the update has failed")
        super().train()
