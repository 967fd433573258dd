"""The commands' parser, and options that several commands have.

An error message of the parser has two lines: the error, and the command that shows the help. The
parser has a method for each kind of option, so that a default is written in one place.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from sc2pool.cli.arguments import hint, integer
from sc2pool.integration import DEFAULT_TASK, spelled_task
from sc2pool.utilities import called


class Parser(argparse.ArgumentParser):
    """argparse's parser, without the usage text before every error message."""

    def flag(self, name: str, help: str, *, default: bool | None = False) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", default=default, help=help)

    def number(
        self,
        name: str,
        help: str,
        default: int | None = None,
        *,
        low: int = 1,
        high: int | None = None,
        metavar: str | None = None,
    ) -> None:
        """Add an option that is a whole number; the help names its default."""
        if default is not None:
            help = f"{help} (default: {default:,})"
        self.add_argument(
            name, type=integer(low, high), default=default, metavar=metavar, help=help
        )

    def path(self, name: str, metavar: str, help: str) -> None:
        """Add an option that is a file or a folder."""
        self.add_argument(name, type=Path, metavar=metavar, help=help)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        chosen = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen:
            message += hint(chosen[1], chosen[2].replace("'", "").split(", "))
        name, space, rest = self.prog.partition(" ")
        command = called(name) if name == "sc2pool" else name  # else `scripts/train`'s
        self.exit(2, f"{self.prog}: {message}\n  see {command}{space}{rest} --help\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Like argparse's method, but the subcommand's parser reports its unknown options."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            given = rest[0].partition("=")[0]
            self.error(f"unknown argument {given}{hint(given, self._option_string_actions)}")
        return found, rest


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The subcommands of the command; each is a parser."""


def add_task(command: Parser, default: str = DEFAULT_TASK) -> None:
    """Add `--task`, which is None if it is not given.

    Args:
        default: the default task, in words, for the help.
    """
    command.add_argument(
        "--task",
        type=spelled_task,
        metavar="NAME|MODULE:CLASS",
        help=f"a built-in task, or one of your own (default: {default})",
    )


def add_task_alone(command: Parser) -> None:
    """Add the task as an option and as a positional argument; see `task_of`."""
    add_task(command)
    command.add_argument(
        "task_alone", nargs="?", type=spelled_task, metavar="TASK", help="the same, without --task"
    )


def add_player(command: Parser) -> None:
    """Add the player, the task and the game, and how actions are chosen."""
    command.add_argument(
        "player",
        metavar="RUN|MODEL|NAME|scripted|random",
        help="a run's folder; a model that SB3 has saved, such as runs/…/model.zip; a task's name, "
        "for the policy that comes with sc2pool; the task's scripted player; or a random one",
    )
    add_task(command, "the run's own")
    add_game(command)
    command.number("--seed", "makes the episodes repeatable (default: none)", low=0, high=2**32 - 1)
    command.flag("--stochastic", "draw actions, as in training and in matches")


def add_game(command: Parser, default: str | None = None) -> None:
    """Add `--game`, which selects the game."""
    command.add_argument(
        "--game",
        default=default,
        metavar="auto|real|standin|PATH",
        help="auto: StarCraft II if it is installed, else the stand-in; real: never the "
        "stand-in; standin: always; PATH: this installation (default: auto)",
    )


def add_ray(command: argparse._ActionsContainer, what: str) -> None:
    """Add `--ray`, which names a Ray cluster.

    Args:
        what: the option's effect, for the help.
    """
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"{what}: auto for the cluster with a node on this machine, or its head's HOST:PORT",
    )


def add_which_pool(command: Parser) -> None:
    """Add the options that choose one of several running pools."""
    which = command.add_mutually_exclusive_group()
    which.add_argument("--pid", type=integer(1), help="the pool of this process")
    add_ray(which, "all pools on the nodes of this Ray cluster")
    which.add_argument(
        "--run", dest="run_dir", type=Path, metavar="DIR", help="the pool with this run directory"
    )
