"""The empty env: its step costs almost nothing, so a measurement shows the cost of the pool.

Each observation begins with the number of steps made, so that an old observation is detected. This
module imports little, because every worker of every compared program imports it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class EmptyEnv(gymnasium.Env):
    """An env that never ends, with float32 observations, eight actions and empty infos.

    Args:
        observation_bytes: The size of an observation in bytes, a multiple of 4.
    """

    action_space = spaces.Discrete(8)

    def __init__(self, observation_bytes: int) -> None:
        self.observation_space = spaces.Box(0, np.inf, (observation_bytes // 4,), np.float32)
        self._observation = np.zeros(observation_bytes // 4, np.float32)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._observation[0] = 0
        return self._observation, {}

    def step(
        self,
        action: int,  # noqa: ARG002
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._observation[0] = self._steps
        return self._observation, 1.0, False, False, {}
