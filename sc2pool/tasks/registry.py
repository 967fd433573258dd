"""Task names to task classes.

A built-in task's class is imported when it is used, so listing the names (for gymnasium's
registry, at `import sc2pool`) imports nothing.
"""

from __future__ import annotations

import difflib
import importlib
from contextlib import suppress
from typing import TYPE_CHECKING

from sc2pool.errors import ConfigError, MissingPackageError
from sc2pool.optional import needed_for

if TYPE_CHECKING:
    from sc2pool.tasks.definition import TaskDefinition

BUILT_IN: dict[str, str] = {
    "MoveToBeacon": "sc2pool.tasks.minigames.move_to_beacon:MoveToBeacon",
    "MoveToBeaconBot": "sc2pool.tasks.minigames.move_to_beacon_bot:MoveToBeaconBot",
    "MoveToBeaconImage": "sc2pool.tasks.minigames.move_to_beacon_image:MoveToBeaconImage",
    "CollectMineralShards": "sc2pool.tasks.minigames.collect_mineral_shards:CollectMineralShards",
    "DefeatRoaches": "sc2pool.tasks.minigames.defeat_roaches:DefeatRoaches",
}


def available() -> list[str]:
    """The names of the built-in tasks whose packages are installed."""
    names = []
    for name in BUILT_IN:
        with suppress(MissingPackageError):
            resolve(name)
            names.append(name)
    return names


def resolve(task: str | type[TaskDefinition]) -> type[TaskDefinition]:
    """The class of a task given by name or by class.

    Raises:
        ConfigError: no such name, not a task class, or an incomplete definition.
        MissingPackageError: the task is written with a package that is not installed.
    """
    from sc2pool.tasks.definition import TaskDefinition, check_definition  # noqa: PLC0415

    if isinstance(task, str):
        if task not in BUILT_IN:
            close = difflib.get_close_matches(task, BUILT_IN, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ConfigError(f"unknown task {task!r}{hint} Built-in tasks: {', '.join(BUILT_IN)}")
        module, _, name = BUILT_IN[task].partition(":")
        with needed_for(f"task {task}"):
            task = getattr(importlib.import_module(module), name)
    if not (isinstance(task, type) and issubclass(task, TaskDefinition)):
        raise ConfigError(
            f"task must be a built-in name, or a subclass of Task or RLBotAI, got {task!r}"
        )
    check_definition(task)
    return task
