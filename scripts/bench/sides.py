"""Makes, steps, checks and closes vectorised envs of every kind, as sides of a comparison.

Neither this module nor `benchmark.py` imports slow modules at the top. `multiprocessing` imports
the main script in each worker, and slow modules would change the worker's start and memory.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from bench.baselines.bare import BareVec
from bench.baselines.empty import EmptyEnv
from bench.baselines.recipe import RecipeEnv
from bench.episodes import WARM_UP_S, WARM_UP_STEPS, EpisodeBudget
from bench.tasks import actions_on, bot_on, episode_steps, task_on

try:
    from sc2pool.cli.bench.measuring import step_for
except ImportError:  # earlier commits, which this module can measure, have an older name
    from sc2pool.cli.bench.rounds import step_for  # type: ignore[import-not-found, no-redef]

START_METHOD = "forkserver"
"""SB3 uses this start method on Linux; it is the fastest that is safe in a process with threads."""

POOL = "SubprocSC2VecEnv"
SB3 = "SubprocVecEnv"
GYMNASIUM = "AsyncVectorEnv"
BARE = "bare shared memory"

POOL_TASK = "pool, Task"
POOL_ALONE = "pool, Task, 1 env a worker"
POOL_BOT = "pool, RLBotAI"
POOL_FIRST_READY = "pool, recv(min_ready=8)"
POOL_ENV = "pool, gymnasium env"
SB3_ENV = f"{SB3}, gymnasium env"
RECIPE = "recipe"
WIRE = "bare wire"


class EmptySide:
    """A side (compared program) with empty envs; checks the number of steps in each observation."""

    def __init__(self, env: Any, n: int) -> None:
        self.env = env
        self._n = n
        self._actions = np.random.default_rng(0).integers(0, 8, (64, n))
        self._newest: Any = None
        self._steps = 0
        env.reset()

    def prepare(self) -> None:
        step_for(self.step, WARM_UP_S)

    def step(self) -> int:
        self._newest = self.env.step(self._actions[self._steps % 64])[0]
        self._steps += 1
        return self._n

    def run(self, seconds: float) -> tuple[int, float]:
        done = step_for(self.step, seconds)
        counts = self._newest[:, 0].tolist()
        if counts != [self._steps] * self._n:
            raise AssertionError(f"observations of steps {counts}, expected {self._steps} of all")
        return done

    def close(self) -> None:
        self.env.close()


def empty_side(kind: str, n: int, observation_bytes: int) -> EmptySide:
    """n empty envs under the pool or one of its peers."""
    make = partial(EmptyEnv, observation_bytes)
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
    return EmptySide(vec, n)


class GameSide:
    """A side of games that are stepped together.

    If an episode ends early in a batch, neither this batch nor its time is counted.
    """

    def __init__(self, env: Any, map_name: str, n: int) -> None:
        self.env = env
        self._n = n
        self._actions = actions_on(map_name, n)
        self._budget = EpisodeBudget(episode_steps(map_name))
        self._steps = 0

    def prepare(self) -> None:
        if self._budget.needs_reset():
            self.env.reset()
            self._budget.reset()
        for _ in range(WARM_UP_STEPS):
            self._step()
        self._budget.spend(WARM_UP_STEPS)

    def _step(self) -> Any:
        self._steps += 1
        return self.env.step(self._actions[self._steps % 64])[2]

    def run(self, seconds: float) -> tuple[int, float]:
        most = self._budget.left
        made, counted, counted_s = 0, 0, 0.0
        before_s = time.perf_counter()
        # Another program's reset may outlast a round, so the time of resets is not counted.
        while made < most and counted_s < seconds:
            dones = self._step()
            made += 1
            now_s = time.perf_counter()
            if not dones.any():
                counted += 1
                counted_s += now_s - before_s
            before_s = now_s
        self._budget.spend(made)
        return counted * self._n, counted_s

    def close(self) -> None:
        self.env.close()


class FirstReadySide:
    """A pool that steps envs as soon as a few are ready; it plays the games of another side.

    This side does not notice resets, so an episode of the map must be longer than the benchmark.
    """

    def __init__(self, side: GameSide, map_name: str, n: int, min_ready: int) -> None:
        self._side = side
        self._pool = side.env.pool
        self._actions = actions_on(map_name, n)
        self._min_ready = min_ready
        self._batches = 0

    def prepare(self) -> None:
        self._side.prepare()

    def run(self, seconds: float) -> tuple[int, float]:
        self._pool.send(self._actions[0])
        done = step_for(self._step, seconds)
        self._pool.recv()
        return done

    def _step(self) -> int:
        envs = self._pool.recv(min_ready=self._min_ready).envs
        self._batches += 1
        self._pool.send(self._actions[self._batches % 64][envs], envs)
        return len(envs)

    def close(self) -> None:
        self._side.close()


def game_side(kind: str, map_name: str, n: int, root: str) -> Any:
    """n games of a map under the pool or one of its peers."""
    if kind == WIRE:
        from bench.baselines.wire import WireSide  # noqa: PLC0415

        return WireSide(n, map_name, root, episode_steps(map_name))
    if kind == RECIPE:
        from stable_baselines3.common.vec_env import SubprocVecEnv  # noqa: PLC0415

        recipes = [partial(RecipeEnv, map_name, root)] * n
        return GameSide(SubprocVecEnv(recipes, START_METHOD), map_name, n)
    from sc2pool import PoolConfig, SubprocSC2VecEnv  # noqa: PLC0415

    task = bot_on(map_name) if kind == POOL_BOT else task_on(map_name)
    config = PoolConfig(envs_per_worker=1) if kind == POOL_ALONE else None
    return GameSide(SubprocSC2VecEnv(n=n, task=task, game=root, config=config), map_name, n)
