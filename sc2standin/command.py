"""The command line of the stand-in.

* To install the game: `python -m sc2standin install DIR [--after-stop freeze] [--any-race]
  [--temper NAME[:VALUE],...]`.
* To run the game: `python -m sc2standin -listen 127.0.0.1 -port 5000 -dataDir DIR -tempDir DIR`.

To run the game, the stand-in takes the flags of the real game, which have one dash. Like the real
game, it ignores unknown flags. The flags with two dashes are the stand-in's own. An installation
puts them into its start script, so clients need not know about them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from sc2standin.install import MARKER, InstallError, install
from sc2standin.process.server import AfterStop, run_server
from sc2standin.process.state import State
from sc2standin.tempers import DEFAULT, GROUPS, TEMPERS, Temper


def main(arguments: list[str]) -> int:
    """Install or run the game; returns the exit status."""
    if arguments[:1] == ["install"]:
        return _install(arguments[1:])
    parser = argparse.ArgumentParser("SC2_x64", allow_abbrev=False)
    parser.add_argument("-listen", default="127.0.0.1", metavar="ADDRESS")
    parser.add_argument("-port", type=int, required=True)
    parser.add_argument("-dataDir", type=Path, default=Path(), metavar="DIR")
    parser.add_argument("-tempDir", type=Path, metavar="DIR")
    _add_ours(parser)
    options, _ignored = parser.parse_known_args(arguments)
    if not 1 <= options.port <= 65535:
        parser.error(f"-port must be 1 to 65535, not {options.port}")
    if not options.listen:  # an empty address means all addresses of the machine
        parser.error("-listen must be an address, not an empty text")
    after_stop = AfterStop(options.after_stop)
    data_dir = options.dataDir.absolute()
    temper = Temper(options.temper, data_dir / MARKER)
    state = State(data_dir, options.tempDir, any_race=options.any_race, temper=temper)
    return run_server(options.listen, options.port, state, after_stop)


class _Parser(argparse.ArgumentParser):
    """An argparse parser that prints an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"sc2standin: {message}\n")


def _install(arguments: list[str]) -> int:
    parser = _Parser("python -m sc2standin install")
    parser.add_argument("directory", type=Path)
    _add_ours(parser)
    options = parser.parse_args(arguments)
    ours = [] if options.after_stop == AfterStop.CATCH_UP else ["--after-stop", options.after_stop]
    if options.any_race:
        ours.append("--any-race")
    if options.temper != DEFAULT:
        ours += ["--temper", options.temper]
    try:
        executable = install(options.directory, ours)
    except InstallError as error:
        print(f"sc2standin: {error}", file=sys.stderr)
        return 2
    print(executable)
    return 0


def _add_ours(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--after-stop",
        choices=[str(choice) for choice in AfterStop],
        default=str(AfterStop.CATCH_UP),
        help="in real time: what becomes of the loops due while the process was stopped",
    )
    parser.add_argument(
        "--any-race",
        action="store_true",
        help="let Zerg and Protoss join a melee, with the town of a Terran",
    )
    parser.add_argument(
        "--temper",
        type=_temper,
        default=DEFAULT,
        metavar="NAME[:VALUE],...",
        help=f"reported behaviours of StarCraft II that are hard on clients (default: {DEFAULT}): "
        f"{', '.join([*GROUPS, *(one.name for one in TEMPERS)])}",
    )


def _temper(text: str) -> str:
    """Check that a text is a valid choice of tempers, and return the text unchanged."""
    try:
        Temper(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
