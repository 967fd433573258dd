"""Finds task classes by name.

A built-in task's class is imported only when it is used. So `import sc2pool`, which lists the names
for gymnasium's registry, imports no task.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sc2pool.errors import ConfigError, MissingPackageError
from sc2pool.optional import needed_for

if TYPE_CHECKING:
    from typing import Any

    from sc2pool.tasks.task import TaskDefinition

BUILT_IN: dict[str, str] = {
    "MoveToBeacon": "sc2pool.tasks.minigames.move_to_beacon:MoveToBeacon",
    "MoveToBeaconBot": "sc2pool.tasks.minigames.move_to_beacon_bot:MoveToBeaconBot",
    "MoveToBeaconImage": "sc2pool.tasks.minigames.move_to_beacon:MoveToBeaconImage",
    "CollectMineralShards": "sc2pool.tasks.minigames.collect_mineral_shards:CollectMineralShards",
    "FindAndDefeatZerglings": "sc2pool.tasks.minigames.zerglings:FindAndDefeatZerglings",
    "FindAndDefeatZerglingsImage": "sc2pool.tasks.minigames.zerglings:FindAndDefeatZerglingsImage",
    "DefeatRoaches": "sc2pool.tasks.minigames.defeat_roaches:DefeatRoaches",
    "DefeatZerglingsAndBanelings": "sc2pool.tasks.minigames.zerglings:DefeatZerglingsAndBanelings",
    "DefeatZerglingsAndBanelingsImage": (
        "sc2pool.tasks.minigames.zerglings:DefeatZerglingsAndBanelingsImage"
    ),
    "CollectMineralsAndGas": "sc2pool.tasks.minigames.town_games:CollectMineralsAndGas",
    "CollectMineralsAndGasImage": "sc2pool.tasks.minigames.town_games:CollectMineralsAndGasImage",
    "BuildMarines": "sc2pool.tasks.minigames.town_games:BuildMarines",
    "BuildMarinesImage": "sc2pool.tasks.minigames.town_games:BuildMarinesImage",
    "MarineDuel": "sc2pool.tasks.marine_duel:MarineDuel",
    "Melee": "sc2pool.tasks.melee:Melee",
    "MeleeImage": "sc2pool.tasks.melee:MeleeImage",
}

DEFAULT_TASK = "MoveToBeacon"
"""The task that is played if none is named."""

SMAC = tuple(
    "3m 8m 25m 5m_vs_6m 8m_vs_9m 10m_vs_11m 27m_vs_30m MMM MMM2 2s3z 3s5z 3s5z_vs_3s6z 3s_vs_3z "
    "3s_vs_4z 3s_vs_5z 1c3s5z 2m_vs_1z corridor 6h_vs_8z 2s_vs_1sc so_many_baneling bane_vs_bane "
    "2c_vs_64zg".split()
)
"""SMAC's scenarios, which are team tasks."""


SMAC_DUELS = tuple(
    f"{name}_duel" for name in ("3m", "8m", "25m", "MMM", "2s3z", "3s5z", "1c3s5z", "bane_vs_bane")
)
"""The matches for two players, from SMAC's scenarios with the same units on both sides."""

SMACV2 = (
    *(
        f"{race}_{sizes}"
        for race in ("terran", "protoss", "zerg")
        for sizes in ("5_vs_5", "10_vs_10", "10_vs_11", "20_vs_20", "20_vs_23")
    ),
    "10gen_terran",
    "10gen_protoss",
    "10gen_zerg",
)
"""SMACv2's scenarios of random teams. A map's name alone means ten units on either side."""

TASK_PLACES: dict[str, str] = (
    BUILT_IN
    | {name: f"sc2pool.tasks.teams.battle_task:{name}" for name in (*SMAC, *SMAC_DUELS)}
    | {name: f"sc2pool.tasks.teams.smacv2:{name}" for name in SMACV2}
)
"""The `module:Class` of each built-in task, by the task's name."""
TASK_GROUPS: dict[str, tuple[str, ...]] = {
    "mini-games": tuple(name for name, place in BUILT_IN.items() if ".minigames." in place),
    "melee": ("Melee", "MeleeImage"),
    "duels": ("MarineDuel", *SMAC_DUELS),
    "smac": SMAC,
    "smacv2": SMACV2,
}
"""The names of all built-in tasks, in groups."""


def spelled_task(task: str) -> str:
    """The built-in name that equals the text if case is ignored; else the text itself."""
    return next((name for name in TASK_PLACES if name.lower() == task.lower()), task)


def built_in_name(task: type[TaskDefinition]) -> str | None:
    """The name under which a class is a built-in task.

    None for a user's class, even if it has the name of a built-in task.
    """
    name = task.__name__
    return name if TASK_PLACES.get(name) == f"{task.__module__}:{name}" else None


def scripted_player(task: type[TaskDefinition]) -> Callable[[Any], Any] | None:
    """The task's scripted player, a function from observation to action; None without one."""
    from sc2pool.tasks.melee import play_melee  # noqa: PLC0415 - rarely needed
    from sc2pool.tasks.minigames.scripted import SCRIPTED  # noqa: PLC0415

    known = {**SCRIPTED, "Melee": play_melee}
    return getattr(task, "scripted", None) or known.get(built_in_name(task) or "")


def available_tasks(names: Iterable[str] = BUILT_IN) -> list[str]:
    """Those tasks of `names` whose packages are installed."""
    found = []
    for name in names:
        with suppress(MissingPackageError):
            resolve_task(name)
            found.append(name)
    return found


def resolve_task(task: str | type[TaskDefinition]) -> type[TaskDefinition]:
    """The class of a task that is given by its name, as `module:Class`, or as a class.

    Raises:
        ConfigError: the name, module or class is unknown, the class is not a task, or its
            definition is incomplete.
        MissingPackageError: the task needs a package that is not installed.
    """
    from sc2pool.tasks.task import TaskDefinition, check_definition  # noqa: PLC0415

    found: object = task
    if isinstance(task, str):
        with needed_for(f"task {task}"):
            found = _imported(task)
    if not (isinstance(found, type) and issubclass(found, TaskDefinition)):
        raise ConfigError(
            f"task must be a built-in name, module:Class, or a subclass of Task or RLBotAI, got "
            f"{found!r}"
        )
    check_definition(found)
    return found


def _imported(task: str) -> object:
    """Import the object with this name; an error in the user's own module is raised unchanged."""
    if task not in TASK_PLACES and ":" not in task:
        close = difflib.get_close_matches(task, TASK_PLACES, n=1, cutoff=0.5)
        own = _as_module_and_class(task)
        hint = f"; did you mean {own or close[0]!r}?" if own or close else "."
        raise ConfigError(
            f"unknown task {task!r}{hint} Built-in tasks: {', '.join(BUILT_IN)}; `sc2pool tasks` "
            "lists those of SMAC and SMACv2, too; a task of your own is module:Class"
        )
    module, _, name = TASK_PLACES.get(task, task).partition(":")
    if not module or module.startswith(".") or not name:
        raise ConfigError(f"task {task!r}: expected module:Class")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        hint = ""
        if module.endswith(".py"):  # the user has named a file
            hint = f"; did you mean {_module_of(module)}:{name}?"
        elif close := difflib.get_close_matches(module, [one.stem for one in Path().glob("*.py")]):
            hint = f"; did you mean {close[0]}:{name}?"
        raise ConfigError(f"task {task!r}: there is no module {error.name!r}{hint}") from error
    if not hasattr(found, name):
        close = difflib.get_close_matches(name, dir(found), n=1)
        hint = f"; did you mean {module}:{close[0]}?" if close else ""
        raise ConfigError(f"task {task!r}: module {module} has no {name!r}{hint}")
    answer: object = getattr(found, name)
    return answer


def _module_of(file: str) -> str:
    """The name of the module in a file."""
    return file.removeprefix("./").removesuffix(".py").replace("/", ".")


def _as_module_and_class(text: str) -> str:
    """The `module:Class` for a file's name or for `module.Class`; empty for any other text."""
    if text.endswith(".py"):
        return f"{_module_of(text)}:CLASS"
    module, dot, name = text.rpartition(".")
    return f"{module}:{name}" if dot else ""
