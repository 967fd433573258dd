"""A parser whose complaints are two lines: what is wrong, and where the help is.

Its options are of few kinds, each of which has a method: a default stands in one place.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from sc2pool.cli.arguments import hint, integer
from sc2pool.shell import called


class Parser(argparse.ArgumentParser):
    """argparse's, without its usage before every complaint."""

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
        """Add an option that is a whole number; if it has a default, the help says so."""
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
        """As argparse's; an option that is unknown is a complaint of the command that it is for."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            given = rest[0].partition("=")[0]
            self.error(f"unknown argument {given}{hint(given, self._option_string_actions)}")
        return found, rest
