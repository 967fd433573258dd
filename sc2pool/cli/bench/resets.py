"""What a reset takes, by rung of the ladder, and what it costs the batch that waits for it.

Episodes are made short and of random length, so that they end one after the other as they would
in a long run, and the batches in which one ends are compared with all the others.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sc2pool.cli.bench.actions import Actions
from sc2pool.tasks.definition import TaskDefinition

SHORTEST_STEPS, LONGEST_STEPS = 30, 90
RESET_KINDS = {"restart_game": ("restart", None), "create_game": ("create", 1)}
"""By name: as `Pool.stats` calls it, and the seed that leads there."""


def short(task: type[TaskDefinition]) -> type[TaskDefinition]:
    """The same task with episodes of a few dozen steps."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        task.__init__(self, *arguments, **named)
        steps = random.randint(SHORTEST_STEPS, LONGEST_STEPS)
        self.max_loops = self.step_mul * steps

    return type(task.__name__, (task,), {"__init__": __init__, "__module__": __name__})


@dataclass
class Batches:
    """The times of one pool's batches, in ms."""

    plain_ms: list[float] = field(default_factory=list)
    with_reset_ms: list[float] = field(default_factory=list)

    def cost_percent(self) -> list[float]:
        """What each reset added to its batch, in percent of a median one without."""
        if not self.plain_ms:
            return []
        usual = median(self.plain_ms)
        return [100 * (one / usual - 1) for one in self.with_reset_ms]


def play(env: Any, actions: Actions, seconds: float, batches: Batches) -> None:
    """Step for so long, and until an episode has ended at least, and take the times."""
    began_s = before_s = time.perf_counter()
    steps = 0
    while before_s - began_s < seconds or steps <= LONGEST_STEPS:
        dones = env.step(actions.next())[2]
        now_s = time.perf_counter()
        taken_ms = batches.with_reset_ms if dones.any() else batches.plain_ms
        taken_ms.append(1000 * (now_s - before_s))
        before_s = now_s
        steps += 1


def rung_ms(env: Any, rung: str) -> float | None:
    """The median time of this rung so far; None if it was not used."""
    taken = env.stats()["reset_s"].get(rung, {"count": 0})
    return 1000.0 * float(taken["p50"]) if taken["count"] else None
