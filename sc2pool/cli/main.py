"""The `sc2pool` command: parses the arguments and turns every ending into an exit code.

Rules: nothing heavy is imported before a command needs it, so `--help` and bad arguments are
answered at once; an error of sc2pool's own is one clear message on stderr, without a traceback.

Exit codes: 0 done, 1 the doctor found something to mend, 2 an error of sc2pool's or a bad
argument, 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sc2pool import __version__
from sc2pool.cli.stop import Stopped
from sc2pool.cli.top_table import NAMES
from sc2pool.errors import SC2PoolError
from sc2pool.optional import needed_for


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; `argv` defaults to the process's arguments.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or file may know fewer letters
            stream.reconfigure(errors="replace")
    args = make_parser().parse_args(argv)
    try:
        with needed_for("this command"):
            return int(args.run(args))
    except SC2PoolError as error:
        print(f"sc2pool: {error}", file=sys.stderr)
        return 2
    except Stopped as stopped:
        return stopped.exit_code
    except KeyboardInterrupt:
        return 130


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command; every subcommand sets `run`."""
    parser = argparse.ArgumentParser(
        prog="sc2pool",
        description="A pool of StarCraft II games behind one vectorised environment.",
    )
    parser.add_argument("--version", action="version", version=f"sc2pool {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    train = commands.add_parser(
        "train",
        # `scripts/train` says here what it was called as, so that usage and hints can be copied.
        prog=os.environ.get("SC2POOL_COMMAND"),
        help="train a policy with PPO",
        description="Train a policy with PPO on a pool of games. Ctrl-C saves and ends.",
    )
    train.set_defaults(run=run_train)
    train.add_argument("--task", help="what is played (default: MoveToBeacon)")
    train.add_argument("--n", type=integer(1), help="number of games (default: 8)")
    train.add_argument(
        "--steps",
        type=integer(1),
        help="env steps in all, those of the resumed run included (default: the task's own)",
    )
    train.add_argument("--seed", type=integer(0, 2**32 - 1), help="makes the run repeatable")
    train.add_argument(
        "--out", type=Path, help="the run's folder (default: runs/TASK-TIME, or the resumed one)"
    )
    train.add_argument(
        "--resume",
        type=Path,
        metavar="PATH",
        help="go on with the run in this folder, or from this model's zip file",
    )
    add_game(train)
    train.add_argument("--device", help="where the policy is computed (default: cpu)")
    train.add_argument(
        "--metrics-port",
        type=integer(1, 65535),
        metavar="PORT",
        help="tell Prometheus the pool's counters at http://127.0.0.1:PORT/metrics (default: no)",
    )

    tasks = commands.add_parser(
        "tasks",
        help="list the built-in tasks",
        description="List the built-in tasks: spaces, limits, published scores, and whether their "
        "maps are installed.",
    )
    tasks.set_defaults(run=run_tasks)
    add_game(tasks, default="auto")
    tasks.add_argument("--json", action="store_true", help="print the list as JSON")

    doctor = commands.add_parser(
        "doctor",
        help="say what is wrong with the game or the machine, and how to mend it",
        description="Look at the installation, the machine and a running game; say what is wrong "
        "and how to mend it. The exit status is 0 if sc2pool works with the game, else 1.",
    )
    doctor.set_defaults(run=run_doctor)
    add_game(doctor, default="auto")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.add_argument("--quick", action="store_true", help="fewer resets and steps")
    doctor.add_argument(
        "--timeout",
        type=positive_number,
        default=600.0,
        metavar="SECONDS",
        help="how long the games may be examined (default: 600)",
    )

    bench = commands.add_parser(
        "bench",
        help="how fast a task is on this machine, and with how many games",
        description="Measure a task on this machine: env steps a second, CPU time and memory for "
        "several numbers of games, the resets, and what limits it.",
    )
    bench.set_defaults(run=run_bench)
    bench.add_argument(
        "--task", default="MoveToBeacon", help="what is played (default: MoveToBeacon)"
    )
    add_game(bench, default="auto")
    bench.add_argument(
        "--n",
        type=positive_integers,
        default=(1, 2, 4, 8),
        metavar="N,N,…",
        help="numbers of games (default: 1,2,4,8)",
    )
    bench.add_argument(
        "--spares",
        type=integer(0),
        default=1,
        help="so many in the resets with spares (default: 1)",
    )
    bench.add_argument(
        "--seconds", type=positive_number, default=9.0, help="of each measurement (default: 9)"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    bench.add_argument("--png", type=Path, metavar="FILE", help="draw it")

    top = commands.add_parser(
        "top",
        help="a live table of a running pool",
        description="A live table of a pool that runs in another terminal.",
    )
    top.set_defaults(run=run_top)
    add_which_pool(top)
    top.add_argument("--once", action="store_true", help="print the table once and leave")
    top.add_argument("--json", action="store_true", help="print all there is, once, as JSON")
    top.add_argument(
        "--sort", default="env", choices=NAMES, metavar="COLUMN", help=f"one of {', '.join(NAMES)}"
    )
    top.add_argument(
        "--interval",
        type=positive_number,
        default=1.0,
        metavar="S",
        help="seconds between two looks (default: 1)",
    )

    watch = commands.add_parser(
        "watch",
        help="a local web page that shows all games of a running pool",
        description="A local web page that shows all games of a pool that runs in another "
        "terminal, side by side and live.",
    )
    watch.set_defaults(run=run_watch)
    add_which_pool(watch)
    watch.add_argument(
        "--port", type=integer(1, 65535), help="of the page (default: 8228, or a free one)"
    )

    standin = commands.add_parser("standin", help="the embedded game for machines without SC2")
    standin_commands = standin.add_subparsers(required=True, metavar="COMMAND")
    install = standin_commands.add_parser("install", help="write an installation of the stand-in")
    install.add_argument("folder", metavar="DIR", help="where to write it")
    install.set_defaults(run=run_standin_install)
    return parser


def add_game(command: argparse.ArgumentParser, default: str | None = None) -> None:
    """Give `command` the option that says which game is played."""
    command.add_argument(
        "--game",
        default=default,
        metavar="auto|real|PATH",
        help="auto: StarCraft II where it is installed, else the stand-in; real: never the "
        "stand-in; PATH: this installation (default: auto)",
    )


def add_which_pool(command: argparse.ArgumentParser) -> None:
    """The arguments that tell which of several running pools is meant."""
    which = command.add_mutually_exclusive_group()
    which.add_argument("--pid", type=integer(1), help="the pool of this process")
    which.add_argument("--run", dest="run_dir", type=Path, metavar="DIR", help="this run's folder")


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """What reads a whole number from `low` to `high`, for argparse."""
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"

    def read(text: str) -> int:
        with suppress(ValueError):
            value = int(text)
            if low <= value and (high is None or value <= high):
                return value
        raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")

    return read


def positive_integers(text: str) -> tuple[int, ...]:
    """`1,2,4`, for argparse."""
    return tuple(map(integer(1), text.split(",")))


def positive_number(text: str) -> float:
    """A number above 0, for argparse."""
    with suppress(ValueError):
        value = float(text)
        if 0 < value < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")


def run_train(args: argparse.Namespace) -> int:
    """`sc2pool train`."""
    from sc2pool.cli.options import TrainOptions, check_extras  # noqa: PLC0415

    check_extras()
    options = TrainOptions.from_args(args)
    # torch and SB3 take seconds to import: only now, when the arguments are known to be good.
    from sc2pool.cli.train import run  # noqa: PLC0415

    return run(options)


def run_tasks(args: argparse.Namespace) -> int:
    """`sc2pool tasks`."""
    from sc2pool.cli.tasks import run  # noqa: PLC0415

    return run(args)


def run_doctor(args: argparse.Namespace) -> int:
    """`sc2pool doctor`."""
    from sc2pool.cli.doctor.command import run  # noqa: PLC0415

    return run(args)


def run_bench(args: argparse.Namespace) -> int:
    """`sc2pool bench`."""
    from sc2pool.cli.bench.command import BenchOptions, run  # noqa: PLC0415

    options = BenchOptions(
        args.task, args.game, args.n, args.spares, args.seconds, args.json, args.png
    )
    return run(options)


def run_top(args: argparse.Namespace) -> int:
    """`sc2pool top`."""
    from sc2pool.cli.top import run  # noqa: PLC0415

    return run(args)


def run_watch(args: argparse.Namespace) -> int:
    """`sc2pool watch`."""
    from sc2pool.cli.watch import run  # noqa: PLC0415

    return run(args)


def run_standin_install(args: argparse.Namespace) -> int:
    """`sc2pool standin install`: the stand-in is a program of its own, run and not imported."""
    command = [sys.executable, "-m", "sc2pool.standin", "install", args.folder]
    return subprocess.run(command, check=False).returncode
