"""Random actions that the task allows, and that cost no time while it is measured.

They are drawn beforehand. If the task has `action_masks`, each batch is drawn from what its masks
allow at that moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

N_BATCHES = 64


class Actions:
    """For a `SubprocSC2VecEnv` that has been reset; the same ones in every run."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._space = space = env.action_space
        self._masked = isinstance(space, spaces.Discrete) and env.has_attr("action_masks")
        space.seed(0)
        self._batches = [
            np.array([space.sample() for _ in range(env.num_envs)])
            if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.Box)
            else [space.sample() for _ in range(env.num_envs)]
            for _ in range(N_BATCHES)
        ]
        self._next = 0

    def next(self) -> Any:
        """A batch of actions."""
        if self._masked:
            masks = self._env.env_method("action_masks")
            return np.array(
                [
                    self._space.sample(None if mask is None else mask.astype(np.int8))
                    for mask in masks
                ]
            )
        self._next += 1
        return self._batches[self._next % N_BATCHES]
