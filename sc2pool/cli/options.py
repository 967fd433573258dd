"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from sc2pool.cli.arguments import integer
from sc2pool.cli.mistakes import Parser
from sc2pool.tasks.registry import DEFAULT_TASK, spelled

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The subcommands of the command; each is a parser."""


def add_task(command: Parser, default: str = DEFAULT_TASK) -> None:
    """Add the option that says what is played; None if it is not given.

    Args:
        default: in words, what is played then.
    """
    command.add_argument(
        "--task",
        type=spelled,
        metavar="NAME|MODULE:CLASS",
        help=f"a built-in task, or one of your own (default: {default})",
    )


def add_task_alone(command: Parser) -> None:
    """Add the task as an option and, for those who write it so, as a word alone; see `task_of`."""
    add_task(command)
    command.add_argument(
        "task_alone", nargs="?", type=spelled, metavar="TASK", help="the same, without --task"
    )


def add_player(command: Parser) -> None:
    """Add who plays what, and how its actions are chosen."""
    command.add_argument(
        "player",
        metavar="RUN|MODEL|NAME|scripted|random",
        help="a run's folder; what SB3 has saved, such as runs/…/model.zip; a task's name, for the "
        "policy that comes with sc2pool; the task's scripted player; or a random one",
    )
    add_task(command, "the run's own")
    add_game(command)
    command.number("--seed", "makes it repeatable (default: none)", low=0, high=2**32 - 1)
    command.flag("--stochastic", "draw actions, as in training and in matches")


def add_game(command: Parser, default: str | None = None) -> None:
    """Add the option that says which game is played."""
    command.add_argument(
        "--game",
        default=default,
        metavar="auto|real|standin|PATH",
        help="auto: StarCraft II if it is installed, else the stand-in; real: never the "
        "stand-in; standin: always; PATH: this installation (default: auto)",
    )


def add_ray(command: argparse._ActionsContainer, what: str) -> None:
    """Add the option that names a cluster."""
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"{what}: auto for the one with a node on this machine, or its head's HOST:PORT",
    )


def add_which_pool(command: Parser) -> None:
    """Add the options that choose one of several running pools."""
    which = command.add_mutually_exclusive_group()
    which.add_argument("--pid", type=integer(1), help="the pool of this process")
    add_ray(which, "all pools on the nodes of this Ray cluster")
    which.add_argument(
        "--run", dest="run_dir", type=Path, metavar="DIR", help="the pool with this run directory"
    )
