"""A parser whose complaints are two lines: what is wrong, and where the help is."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """argparse's, without its usage before every complaint."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        chosen = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen:
            message += hint(chosen[1], chosen[2].replace("'", "").split(", "))
        self.exit(2, f"{self.prog}: {message}\n  see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse's; an option that is unknown is a complaint of the command that it is for."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            given = rest[0].partition("=")[0]
            self.error(f"unknown argument {given}{hint(given, self._option_string_actions)}")
        return found, rest


def hint(given: str, known: Iterable[str]) -> str:
    """What may have been meant; empty if nothing is close."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
