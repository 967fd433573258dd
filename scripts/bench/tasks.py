"""The tasks that all sides play: the built-in ones, and walking on the canned maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from sc2pool.tasks.task import Task

try:
    from sc2pool.tasks.registry import resolve_task
except ImportError:  # earlier commits, which this module can measure, have an older name
    from sc2pool.tasks.registry import resolve as resolve_task  # type: ignore[attr-defined, no-redef]

CANNED = "Canned"
"""The first part of a canned map's name; on such a map the game's answers are prepared."""
CANNED_STEPS = 20_000
"""The number of env steps of an episode on canned maps; the maps' own time limit is higher."""
ATTACKS = (1, 2)
"""Actions of DefeatRoaches that make the marines fight at once, so that few episodes end early."""


def task_on(map_name: str) -> type[Task]:
    """The task that is played on a map."""
    if not map_name.startswith(CANNED):
        return resolve_task(map_name)  # type: ignore[return-value]
    walking: Any = resolve_task("MoveToBeacon")
    return type(map_name, (walking,), {"map_name": map_name, "max_loops": None})


def bot_on(map_name: str) -> type[Any] | None:
    """The task of a map, written with python-sc2's `BotAI`; None if there is no such bot."""
    walking: Any = resolve_task("MoveToBeaconBot")
    if map_name == "MoveToBeacon":
        return walking
    if not map_name.startswith(CANNED):
        return None
    return type(f"{map_name}Bot", (walking,), {"map_name": map_name, "max_loops": None})


def episode_steps(map_name: str) -> int:
    """The number of env steps of an episode that does not end early."""
    task = task_on(map_name)
    return CANNED_STEPS if task.max_loops is None else task.max_loops // task.step_mul


def actions_on(map_name: str, n: int) -> np.ndarray:
    """A table of 64 batches of random actions, of shape (64, n, …)."""
    rng = np.random.default_rng(0)
    if map_name == "DefeatRoaches":
        return rng.choice(ATTACKS, (64, n))
    if map_name == "CollectMineralShards":
        return rng.integers(0, 8, (64, n, 2))
    return rng.integers(0, 8, (64, n))
