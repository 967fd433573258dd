"""Vectorised envs of every kind as sides of a comparison: made, stepped, checked, closed.

Rule: nothing heavy is imported at the top here or in `benchmark.py`, because what starts its
workers with `multiprocessing` imports the main script in each of them; a worker's start and size
shall be its own side's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.bare import BareVec
from bench.empty import EmptyEnv
from sc2pool.cli.bench.rounds import step_for

START_METHOD = "forkserver"
"""SB3's own choice on Linux; of its start methods the best that is safe beside threads."""

POOL = "SubprocSC2VecEnv"
SB3 = "SubprocVecEnv"
GYMNASIUM = "AsyncVectorEnv"
BARE = "bare shared memory"


class VecSide:
    """A `VecEnv`, or whatever else is stepped with an array of actions.

    Args:
        env: already made; closed with the side.
        n: its number of envs.
        reset: begins an episode in every env.
        episode_steps: steps of every env until its episode may end; None for never. A side with
            such an end is reset before each round, and a round ends before the episodes do.
    """

    def __init__(
        self,
        env: Any,
        n: int,
        reset: Callable[[], Any],
        n_actions: int,
        episode_steps: int | None = None,
    ) -> None:
        self.env = env
        self.n = n
        self._reset = reset
        self._actions = np.random.default_rng(0).integers(0, n_actions, (64, n))
        self._episode_steps = episode_steps
        self._steps = 0
        reset()

    def prepare(self) -> None:
        if self._episode_steps is not None and self._steps:
            self._reset()
            self._steps = 0

    def run(self, seconds: float) -> tuple[int, float]:
        most = None
        if self._episode_steps is not None:
            # What is not played by the warm-up is left for the round.
            left = self._episode_steps - self._steps - 1
            most = self.n * max(1, left if self._steps else left // 8)
        return step_for(self.step, seconds, most)

    def step(self) -> int:
        self.env.step(self._actions[self._steps % 64])
        self._steps += 1
        return self.n

    def close(self) -> None:
        self.env.close()


class EmptySide(VecSide):
    """Empty envs: their observations tell how often they were stepped, so it is checked."""

    def __init__(self, env: Any, n: int, reset: Callable[[], Any]) -> None:
        self._newest: Any = None
        super().__init__(env, n, reset, n_actions=8)

    def step(self) -> int:
        self._newest = self.env.step(self._actions[self._steps % 64])[0]
        self._steps += 1
        return self.n

    def run(self, seconds: float) -> tuple[int, float]:
        done = super().run(seconds)
        counts = self._newest[:, 0].tolist()
        if counts != [self._steps] * self.n:
            raise AssertionError(f"observations of steps {counts}, expected {self._steps} of all")
        return done


def empty_side(kind: str, n: int, observation_bytes: int, sleep_s: float = 0.0) -> EmptySide:
    """n empty envs under one of the four."""
    make = partial(EmptyEnv, observation_bytes, sleep_s)
    vec: Any
    if kind == BARE:
        vec = BareVec(n, observation_bytes)
    elif kind == POOL:
        from sc2pool import SubprocSC2VecEnv  # noqa: PLC0415

        vec = SubprocSC2VecEnv([make] * n)
    elif kind == SB3:
        from stable_baselines3.common.vec_env import SubprocVecEnv  # noqa: PLC0415

        vec = SubprocVecEnv([make] * n, START_METHOD)
    else:
        from gymnasium.vector import AsyncVectorEnv  # noqa: PLC0415

        vec = AsyncVectorEnv([make] * n, shared_memory=True, context=START_METHOD)
    return EmptySide(vec, n, vec.reset)
