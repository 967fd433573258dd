"""The duration of resets, by kind, and their cost to the batch that waits for them.

Episodes are made short and of random length, so that they end one after the other as in a long run.
The batches in which one ends are compared with all the others.
"""

from __future__ import annotations

import random
import time
from statistics import median
from typing import Any

from sc2pool.cli.bench.actions import Actions
from sc2pool.tasks.definition import TaskDefinition

SHORTEST_STEPS, LONGEST_STEPS = 30, 90
RESET_KINDS = {"restart_game": ("restart", None), "create_game": ("create", 1)}
"""By name: its name in `Pool.stats`, and the seed that leads to it."""


def short(task: type[TaskDefinition]) -> type[TaskDefinition]:
    """The same task with episodes of a few dozen steps."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        task.__init__(self, *arguments, **named)
        steps = random.randint(SHORTEST_STEPS, LONGEST_STEPS)
        self.max_loops = self.step_mul * steps

    return type(task.__name__, (task,), {"__init__": __init__, "__module__": __name__})


class ShortEpisodes:
    """Plays a pool with one kind of reset, and takes the time of each batch.

    Args:
        env: a `SubprocSC2VecEnv` of a task made `short`.
        kind: one of `RESET_KINDS`.
    """

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
        """Step for this long, and at least until an episode has ended."""
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
        """The median time of a reset of this kind so far; None if there was none."""
        took = self._env.stats().reset_s.get(self._stats_name)
        return None if took is None else 1000.0 * float(took.p50)

    def cost_percent(self) -> list[float]:
        """The time that each reset added to its batch, in percent of a median batch without one."""
        if not self._plain_ms:
            return []
        usual_ms = median(self._plain_ms)
        return [100 * (one / usual_ms - 1) for one in self._with_reset_ms]
