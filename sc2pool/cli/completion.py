"""`sc2pool --print-completion SHELL`: a script with which the shell completes the command."""

from __future__ import annotations

import argparse
from typing import Any

from sc2pool.errors import MissingPackageError
from sc2pool.optional import needed_for

SHELLS = ("bash", "zsh")


class PrintCompletion(argparse.Action):
    """Prints the script and ends."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, __: Any = None) -> None:
        try:
            with needed_for("--print-completion"):
                import shtab  # noqa: PLC0415 - of an extra
        except MissingPackageError as error:
            parser.error(str(error))
        print(shtab.complete(parser, shell))
        parser.exit()
