"""Task names to task classes.

The built-in names are strings until one is used, so that whoever only wants to know the names
(gymnasium's registry, at `import sc2pool`) loads nothing.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from sc2pool.errors import ConfigError

if TYPE_CHECKING:
    from sc2pool.tasks.definition import TaskDefinition

BUILT_IN: dict[str, str] = {
    "MoveToBeacon": "sc2pool.tasks.minigames.move_to_beacon:MoveToBeacon",
    "MoveToBeaconBot": "sc2pool.tasks.minigames.move_to_beacon_bot:MoveToBeaconBot",
    "MoveToBeaconImage": "sc2pool.tasks.minigames.move_to_beacon_image:MoveToBeaconImage",
    "CollectMineralShards": "sc2pool.tasks.minigames.collect_mineral_shards:CollectMineralShards",
    "DefeatRoaches": "sc2pool.tasks.minigames.defeat_roaches:DefeatRoaches",
}


def resolve(task: str | type[TaskDefinition]) -> type[TaskDefinition]:
    """The class of a task given by name or by class.

    Raises:
        ConfigError: no such name, not a task class, or an incomplete definition.
    """
    from sc2pool.tasks.definition import TaskDefinition, check_definition  # noqa: PLC0415

    if isinstance(task, str):
        if task not in BUILT_IN:
            close = difflib.get_close_matches(task, BUILT_IN, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ConfigError(f"unknown task {task!r}{hint} Built-in tasks: {', '.join(BUILT_IN)}")
        module, _, name = BUILT_IN[task].partition(":")
        task = getattr(importlib.import_module(module), name)
    if not (isinstance(task, type) and issubclass(task, TaskDefinition)):
        raise ConfigError(
            f"task must be a built-in name, or a subclass of Task or RLBotAI, got {task!r}"
        )
    check_definition(task)
    return task
