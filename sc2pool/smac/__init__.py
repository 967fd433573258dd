"""SMAC's and SMACv2's tasks with your own options, and `StarCraft2Env`, which has SMAC's interface.

* `smac_task("3m", Rules(reward_sparse=True))` is a scenario of SMAC.
* `smac_task(own_scenario("mine", 80, …))` is a scenario of your own map.
* `smac_duel("3m", ZERO_SUM)` has learners on both sides.
* `smacv2_task("10gen_zerg", example_config("10gen_zerg", 5, 8))` is a scenario of SMACv2.

Each function's result can be used like any other task, as in `SubprocSC2VecEnv(smac_task(…))`. With
SMAC's default options the task's name is enough, as in `SubprocSC2VecEnv("3m")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sc2pool.tasks.teams.battle_task import smac_duel, smac_task
from sc2pool.tasks.teams.scenarios import (
    UNIT_TYPES,
    ZERO_SUM,
    Rules,
    Scenario,
    UnitType,
    own_scenario,
)
from sc2pool.tasks.teams.smacv2 import example_config, smacv2_task

if TYPE_CHECKING:
    from typing import Any

    from sc2pool.smac.env import StarCraft2Env

__all__ = [
    "UNIT_TYPES",
    "ZERO_SUM",
    "Rules",
    "Scenario",
    "StarCraft2Env",
    "UnitType",
    "example_config",
    "own_scenario",
    "smac_duel",
    "smac_task",
    "smacv2_task",
]


def __getattr__(name: str) -> Any:
    if name != "StarCraft2Env":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # This import is not at the top, because workers import this module only for a task.
    from sc2pool.smac.env import StarCraft2Env  # noqa: PLC0415

    return StarCraft2Env
