"""Measures a task's rate for several numbers of games, and its resets.

Only one pool exists at a time, because real games need much memory. Each pool is measured in
several rounds. As in a training, episodes end and are followed by resets, which the rates include.
The random actions are drawn before the measurement, so that the rates do not include the drawing.
If the task has `action_masks`, possible actions are instead drawn during each step.

To measure resets, episodes get short random lengths, so that they end at different times as in a
long run. Batches in which an episode ends are compared with all other batches.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.bench.measuring import (
    GAME,
    WORKER,
    Measured,
    Resets,
    Rounds,
    measure,
    memory_by_role,
    step_for,
    tell,
)
from sc2pool.integration import TaskDefinition
from sc2pool.utilities import available_bytes

ROUNDS = 3
WARM_UP_STEPS = 10


class PoolSide:
    """A pool that is stepped with random actions."""

    def __init__(self, env: SubprocSC2VecEnv) -> None:
        self._env = env
        env.reset()
        self._actions = Actions(env)

    def prepare(self) -> None:
        for _ in range(WARM_UP_STEPS):
            self._step()

    def run(self, seconds: float) -> tuple[int, float]:
        return step_for(self._step, seconds)

    def _step(self) -> int:
        self._env.step(self._actions.next())
        return self._env.num_envs


def measure_sizes(
    task: type[TaskDefinition], game: Path, ns: Sequence[int], *, seconds: float
) -> tuple[list[Measured], str]:
    """Measure the pools that fit into memory, smallest first; also returns the game's version."""
    found: list[Measured] = []
    version = ""
    for n in sorted(set(ns)):
        if found and n * found[-1].env_bytes > available_bytes():
            tell(f"n={n}: left out, these games do not fit into the memory")
            continue
        tell(f"n={n}: starting")
        began_s = time.perf_counter()
        with closing(SubprocSC2VecEnv(n=n, task=task, game=game)) as env:
            side = PoolSide(env)
            started_s = time.perf_counter() - began_s
            rounds = []
            for _ in range(ROUNDS):
                rounds.append(measure(side, seconds / ROUNDS))
                tell(f"n={n}: {rounds[-1].steps_per_s:,.0f} steps/s")
            memory = memory_by_role()
            version = env.stats().game_version or ""
        game_bytes, worker_bytes = (
            # Take only the n largest processes, because a game may start small helper processes.
            int(median([one.pss_bytes for one in memory[role]][:n] or [0]))
            for role in (GAME, WORKER)
        )
        found.append(Measured(n, Rounds(rounds), started_s, game_bytes, worker_bytes))
    return found, version


def measure_resets(
    task: type[TaskDefinition], game: Path, n: int, spares: int, *, seconds: float
) -> Resets:
    """Measure each kind of reset on short episodes, in a pool with this number of spares."""
    tell(f"resets with {spares} spares: starting")
    taken_ms: dict[str, float] = {}
    cost_percent: dict[str, float] = {}
    with closing(SubprocSC2VecEnv(n=n, task=short(task), game=game, spares=spares)) as env:
        for kind in RESET_KINDS:
            episodes = ShortEpisodes(env, kind)
            episodes.play(seconds / len(RESET_KINDS))
            if (median_ms := episodes.reset_ms()) is not None:
                taken_ms[kind] = median_ms
            if cost := episodes.cost_percent():
                cost_percent[kind] = median(cost)
    return Resets(n, spares, taken_ms, cost_percent)


N_BATCHES = 64


class Actions:
    """Random actions, the same in every run, for a `SubprocSC2VecEnv` that has been reset."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._space = space = env.action_space
        self._masked = isinstance(space, spaces.Discrete) and env.has_attr("action_masks")
        space.seed(0)
        batches = [[space.sample() for _ in range(env.num_envs)] for _ in range(N_BATCHES)]
        is_array = isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.Box)
        self._batches: list[Any] = list(map(np.array, batches)) if is_array else batches
        self._next = 0

    def next(self) -> Any:
        if self._masked:
            masks = self._env.env_method("action_masks")
            return np.array([self._space.sample(mask.astype(np.int8)) for mask in masks])
        self._next += 1
        return self._batches[self._next % N_BATCHES]


SHORTEST_STEPS, LONGEST_STEPS = 30, 90
RESET_KINDS = {"restart_game": ("restart", None), "create_game": ("create", 1)}
"""Each kind of reset: its name in `Pool.stats`, and the env's seed that causes it."""


def short(task: type[TaskDefinition]) -> type[TaskDefinition]:
    """A subclass of the task with episodes of a few dozen steps."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        task.__init__(self, *arguments, **named)
        steps = random.randint(SHORTEST_STEPS, LONGEST_STEPS)
        self.max_loops = self.step_mul * steps

    return type(task.__name__, (task,), {"__init__": __init__, "__module__": __name__})


class ShortEpisodes:
    """Plays short episodes (see `short`) with one kind of reset, and times each batch."""

    def __init__(self, env: Any, kind: str) -> None:
        self._env = env
        self._stats_name, seed = RESET_KINDS[kind]
        if seed is not None:
            env.seed(seed)
        env.reset()
        self._actions = Actions(env)
        self._plain_ms: list[float] = []
        self._with_reset_ms: list[float] = []

    def play(self, seconds: float) -> None:
        """Step for `seconds`, or longer if an env has not ended an episode yet."""
        began_s = before_s = time.perf_counter()
        steps = 0
        while before_s - began_s < seconds or steps <= LONGEST_STEPS:
            dones = self._env.step(self._actions.next())[2]
            now_s = time.perf_counter()
            taken_ms = self._with_reset_ms if dones.any() else self._plain_ms
            taken_ms.append(1000 * (now_s - before_s))
            before_s = now_s
            steps += 1

    def reset_ms(self) -> float | None:
        """The median time of this kind of reset so far; None before the first reset."""
        took = self._env.stats().reset_s.get(self._stats_name)
        return None if took is None else 1000.0 * float(took.p50)

    def cost_percent(self) -> list[float]:
        """How many percent longer each batch with a reset was than the median batch without one."""
        if not self._plain_ms:
            return []
        usual_ms = median(self._plain_ms)
        return [100 * (one / usual_ms - 1) for one in self._with_reset_ms]
