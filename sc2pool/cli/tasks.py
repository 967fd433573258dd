"""`sc2pool tasks [WORD]`: lists the built-in tasks with their spaces, limits and scores.

Rule: the list needs no game. If no installation is found, maps count as not installed, and a
message on stderr says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.cli.arguments import hint
from sc2pool.cli.table import NONE, make_table, open_console
from sc2pool.errors import ConfigError
from sc2pool.integration import (
    TASK_GROUPS,
    TASK_PLACES,
    Installation,
    agents_of,
    available_tasks,
    find_installation,
    find_map,
    resolve_task,
    scores_of,
)

SPACES = ("task", "observation", "action", "step_mul", "max loops", "masks", "rows")
SCORES = ("task", "map", "installed", "random", "scripted", "human", "grandmaster", "FullyConv")
NOTES = """\
Every task is in gymnasium's registry: make_vec("sc2pool/NAME-v0"), or make for tasks with one row.
Loops are game loops, 22.4 a second; an env step is step_mul of them. A game has one or more rows.
Scores per episode: random and scripted on the stand-in; the others from the SC2LE paper, 2017, on
StarCraft II."""


@dataclass(frozen=True)
class TaskRow:
    task: str
    map_name: str
    observation_space: str
    action_space: str
    step_mul: int
    max_loops: int | None
    action_masks: bool
    rows: int
    """How many rows of a batch each game has: one row for each unit or player that learns."""
    map_file: Path | None
    """The map's file; None if the map is not installed, or no installation was found."""


def run(args: argparse.Namespace) -> int:
    installation, note = None, ""
    try:
        installation = find_installation(args.game, says=False)
    except ConfigError as error:
        if args.game != "auto":
            raise
        note = str(error)
    names = chosen(args.word)
    rows = [describe(name, installation) for name in available_tasks(names)]
    if args.json:
        print(as_json(rows, installation, note))
        return 0
    console = open_console()
    for header, cells in ((SPACES, cells_of_spaces), (SCORES, cells_of_scores)):
        console.print(make_table(header, map(cells, rows)))
        console.print()
    if args.word is None:
        for group, members in TASK_GROUPS.items():
            if unlisted := [name for name in members if name not in names]:
                console.print(f"{group}: {' '.join(unlisted)}\n")
    console.print(NOTES)
    if installation is not None:
        console.print(f"Installation: {installation.root}: {installation.found_by}")
    else:
        print(f"sc2pool: {note}", file=sys.stderr)
    return 0


def chosen(word: str | None) -> list[str]:
    """The names of the tasks to list in full; raises `ConfigError` if `word` matches none."""
    if word is None:
        return [name for name, place in TASK_PLACES.items() if ".teams." not in place]
    names = TASK_GROUPS.get(word.lower()) or [
        name for name in TASK_PLACES if word.lower() in name.lower()
    ]
    if not names:
        raise ConfigError(
            f"no task with {word!r} in its name, and no such group; groups: "
            f"{', '.join(TASK_GROUPS)}{hint(word, (*TASK_GROUPS, *TASK_PLACES))}"
        )
    return list(names)


def describe(name: str, installation: Installation | None) -> TaskRow:
    task = resolve_task(name)
    return TaskRow(
        task=name,
        map_name=task.map_name,
        observation_space=space_in_words(task.observation_space),
        action_space=space_in_words(task.action_space),
        step_mul=task.step_mul,
        max_loops=task.max_loops,
        action_masks=hasattr(task, "action_masks"),
        rows=task.players * agents_of(task),
        map_file=_map_file(installation, task.map_name),
    )


def _map_file(installation: Installation | None, map_name: str) -> Path | None:
    if installation is not None:
        with suppress(ConfigError):
            return find_map(installation, map_name)
    return None


def space_in_words(space: spaces.Space[Any]) -> str:
    """A short text for a space, such as `Box(-1, 1, (5,), float32)`."""
    if isinstance(space, spaces.Box):
        low, high = np.unique(space.low), np.unique(space.high)
        bounds = ", ".join(f"{b[0]:g}" if len(b) == 1 else f"{b[0]:g}…" for b in (low, high))
        return f"Box({bounds}, {space.shape}, {space.dtype})"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete({space.nvec.tolist()})"
    return str(space)


def cells_of_spaces(row: TaskRow) -> tuple[str, ...]:
    """One row of the first table: the task's spaces and limits."""
    return (
        row.task,
        row.observation_space,
        row.action_space,
        str(row.step_mul),
        "none" if row.max_loops is None else str(row.max_loops),
        "yes" if row.action_masks else "no",
        str(row.rows),
    )


def cells_of_scores(row: TaskRow) -> tuple[str, ...]:
    """One row of the second table: the task's map and scores."""
    ours, published = scores_of(row.map_name)
    scores = (
        *((ours.random, ours.scripted) if ours else (None, None)),
        *(
            (published.human, published.grandmaster, published.agent_best_mean)
            if published
            else 3 * (None,)
        ),
    )
    return (
        row.task,
        row.map_name,
        "no" if row.map_file is None else "yes",
        *(NONE if score is None else f"{score:g}" for score in scores),
    )


def _scores_as_dict(map_name: str) -> dict[str, Any]:
    standin, published = scores_of(map_name)
    return {"standin": standin, "published": None if published is None else asdict(published)}


def as_json(rows: list[TaskRow], installation: Installation | None, note: str) -> str:
    found = None
    if installation is not None:
        found = {"root": installation.root, "found_by": installation.found_by}
    tasks = [asdict(row) | _scores_as_dict(row.map_name) for row in rows]
    whole = {"installation": found, "note": note, "tasks": tasks}
    return json.dumps(whole, indent=2, default=str)
