"""The command's arguments. Each subcommand has a parser, which also sets the function to run.

`Parser` has a method for each kind of option, so that each default is written only once. A
parser's error messages have two lines: the error, and the command that shows the help.

`--print-completion SHELL` prints a script with which the shell completes the command.

Rule: a subcommand's modules are imported only when the subcommand runs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from sc2pool import __version__
from sc2pool.cli.arguments import hint, integer, numbers_of_games, positive_number
from sc2pool.cli.running.top_table import NAMES
from sc2pool.cli.training.algorithms import ALGORITHMS, MODES
from sc2pool.errors import MissingPackageError
from sc2pool.integration import DEFAULT_TASK, MOST_GAMES, TASK_GROUPS, spelled_task
from sc2pool.utilities import called, needed_for


class Parser(argparse.ArgumentParser):
    """argparse's parser, but error messages do not begin with the usage text."""

    def flag(self, name: str, help: str, *, default: bool | None = False) -> None:
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
        self.add_argument(name, type=Path, metavar=metavar, help=help)

    def error(self, message: str) -> NoReturn:
        chosen = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen:
            message += hint(chosen[1], chosen[2].replace("'", "").split(", "))
        name, space, rest = self.prog.partition(" ")
        command = called(name) if name == "sc2pool" else name  # the program may be `scripts/train`
        self.exit(2, f"{self.prog}: {message}\n  see {command}{space}{rest} --help\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, but let the parser of the subcommand report unknown options."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            given = rest[0].partition("=")[0]
            self.error(f"unknown argument {given}{hint(given, self._option_string_actions)}")
        return found, rest


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The subcommands of `sc2pool`; each is a parser."""


def add_task(command: Parser, default: str = DEFAULT_TASK) -> None:
    """Add `--task`, which is None if the user does not give it; its help names the default."""
    command.add_argument(
        "--task",
        type=spelled_task,
        metavar="NAME|MODULE:CLASS",
        help=f"a built-in task, or one of your own (default: {default})",
    )


def add_task_alone(command: Parser) -> None:
    """Add the task both as an option and as a positional argument; see `task_of`."""
    add_task(command)
    command.add_argument(
        "task_alone", nargs="?", type=spelled_task, metavar="TASK", help="the same, without --task"
    )


def add_player(command: Parser) -> None:
    """Add the options for the player, the task, the game, and how actions are chosen."""
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
    command.add_argument(
        "--game",
        default=default,
        metavar="auto|real|standin|PATH",
        help="auto: StarCraft II if it is installed, else the stand-in; real: never the "
        "stand-in; standin: always; PATH: this installation (default: auto)",
    )


def add_ray(command: argparse._ActionsContainer, what: str) -> None:
    """Add `--ray`, which names a Ray cluster; `what` is the help text about the cluster."""
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"{what}: auto for the cluster with a node on this machine, or its head's HOST:PORT",
    )


def add_which_pool(command: Parser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument("--pid", type=integer(1), help="the pool of this process")
    add_ray(which, "all pools on the nodes of this Ray cluster")
    which.add_argument(
        "--run", dest="run_dir", type=Path, metavar="DIR", help="the pool with this run directory"
    )


SHELLS = ("bash", "zsh")
_STAND_IN_S = 120.0
"""Time limit of the stand-in's own program, which writes some small files."""
AFTER_STOP = ("catch-up", "freeze")
"""A copy of the choices of the stand-in's `--after-stop`; the stand-in is a separate program."""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command; each subcommand's parser sets `run`, its function."""
    parser = Parser(
        prog="sc2pool",
        description="A pool of StarCraft II games behind one vectorised environment.",
    )
    parser.add_argument("--version", action="version", version=f"sc2pool {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        help="print a script with which this shell completes the command's words",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        add_train,
        add_tune,
        add_play,
        add_record,
        add_replay,
        add_tasks,
        add_doctor,
        add_bench,
        add_top,
        add_watch,
        add_standin,
    ):
        add(commands)
    return parser


def add_train(commands: Commands) -> None:
    """Add `train`. Options that are not given are None; a resumed run may then set them."""
    train = commands.add_parser(
        "train",
        # `scripts/train` sets this variable to its own name, for use in printed commands.
        prog=os.environ.get("SC2POOL_COMMAND"),
        help="train a policy",
        description="Train a policy on a pool of games. Ctrl-C saves and ends.",
    )
    train.set_defaults(run=run_train)
    add_task_alone(train)
    train.add_argument(
        "--algo",
        type=str.lower,
        choices=ALGORITHMS,
        metavar="NAME",
        help=f"the algorithm: {', '.join(ALGORITHMS)} (default: ppo)",
    )
    train.path(
        "--hyperparameters",
        "FILE",
        "YAML file of hyperparameters, in RL Zoo's format (default: the algorithm's bundled ones)",
    )
    train.number("--n", "number of games (default: 8)", high=MOST_GAMES)
    train.flag("--realtime", "the games run by themselves, 22.4 loops a second", default=None)
    train.number("--spares", "additional games with the next episodes ready (default: 0)", low=0)
    train.number(
        "--steps",
        "env steps in total, including those of the resumed run (default: the task's own)",
    )
    train.number("--seed", "makes the run repeatable", low=0, high=2**32 - 1)
    train.path("--out", "DIR", "the run's folder (default: runs/TASK-TIME, or the resumed run's)")
    train.path("--resume", "PATH", "continue the run in this folder, or from this model's zip file")
    add_game(train)
    train.number(
        "--eval-every",
        "evaluate the policy this often, in separate games, and keep the best model "
        "(default: never)",
        metavar="STEPS",
    )
    train.number("--eval-episodes", "episodes of an evaluation (default: 10)", metavar="N")
    train.flag(
        "--video",
        "record an episode of each evaluation, including the evaluation after the training",
        default=None,
    )
    train.add_argument(
        "--self-play",
        nargs="?",
        const=MODES[0],
        choices=MODES,
        metavar="MODE",
        help="how a task of two players is trained: the policy plays both sides "
        f"(shared, the default), or one side against its own snapshots "
        f"({', '.join(MODES[1:])})",
    )
    train.number(
        "--snapshot-every",
        "save a snapshot this often, with self-play (default: twenty in a run)",
        metavar="STEPS",
    )
    train.flag("--watch", "show the games and the training's curves on a local web page")
    train.flag("--wandb", "log to Weights & Biases, too", default=None)
    train.add_argument("--device", help="device that computes the policy (default: cpu)")
    add_ray(train, "play on the nodes of this Ray cluster")
    train.number(
        "--metrics-port",
        "serve the pool's metrics to Prometheus at http://127.0.0.1:PORT/metrics "
        "(default: no metrics)",
        high=65535,
        metavar="PORT",
    )


def add_play(commands: Commands) -> None:
    play = commands.add_parser(
        "play",
        help="let a trained model play",
        description="Let a trained model play episodes, or matches against another model, the "
        "task's scripted player or the game's own computer. Replay, video and GIF are of the first "
        "episode.",
    )
    play.set_defaults(run=run_player("play"))
    add_player(play)
    play.number("--episodes", "number of episodes, or of matches", 10)
    play.number("--n", "number of games", 1, high=MOST_GAMES)
    play.flag("--realtime", "the games run by themselves")
    play.flag("--watch", "show the games on a local web page, at their own pace")
    for name, what in (("replay", "replay"), ("video", "video"), ("gif", "picture")):
        play.path(f"--{name}", "FILE", f"write a {what} of the first episode")
    other = play.add_mutually_exclusive_group()
    other.add_argument(
        "--against", metavar="MODEL|scripted", help="the player of the other side of a match"
    )
    other.add_argument(
        "--opponent",
        nargs=2,
        metavar=("RACE", "DIFFICULTY"),
        help="the game's computer plays the other side: zerg medium, random veryeasy, …",
    )


def add_record(commands: Commands) -> None:
    record = commands.add_parser(
        "record",
        help="write episodes as a Minari dataset",
        description="Let a trained model, the task's scripted player or a random one play, and "
        "write the episodes as a dataset in Minari's format. Ctrl-C saves and ends.",
    )
    record.set_defaults(run=run_player("record"))
    add_player(record)
    record.add_argument(
        "--dataset",
        metavar="ID",
        help="the dataset's name in Minari (default: sc2pool/TASK/PLAYER-v0)",
    )
    record.number("--steps", "env steps of the dataset, which has whole episodes", 100_000)
    record.number("--n", "number of games", 8, high=MOST_GAMES)
    record.flag("--resume", "continue an existing dataset")
    record.flag(
        "--keep-faulty",
        "keep episodes that a fault cut short, marked in their metadata (default: leave them out)",
    )


def add_tune(commands: Commands) -> None:
    tune = commands.add_parser(
        "tune",
        help="search for good hyperparameters",
        description="Search for good hyperparameters with Optuna: short trainings one after the "
        "other, on games that stay open. If called again with the same --out, it continues.",
    )
    tune.set_defaults(run=run_of("tune"))
    add_task_alone(tune)
    add_game(tune, default="auto")
    tune.add_argument(
        "--algo", type=str.lower, choices=ALGORITHMS, default="ppo", help="(default: ppo)"
    )
    tune.number("--trials", "number of trials, including those of earlier calls", 20)
    tune.number("--steps", "env steps of each trial", 20_000)
    tune.number("--n", "number of games", 8, high=MOST_GAMES)
    tune.number("--eval-episodes", "episodes of a trial's evaluation", 16, metavar="N")
    tune.number("--seed", "seed of every trial", 0, low=0, high=2**32 - 1)
    tune.add_argument(
        "--device", default="cpu", help="device that computes the policies (default: cpu)"
    )
    tune.path("--out", "DIR", "folder of the search (default: runs/tune-TASK-ALGO)")


def add_replay(commands: Commands) -> None:
    replay = commands.add_parser(
        "replay",
        help="describe a replay, or draw it as an animated picture",
        description="Describe a replay, or draw it as an animated picture. The game must be the "
        "one that wrote the replay: the stand-in for a replay of the stand-in.",
    )
    replay.set_defaults(run=run_of("replay"))
    replay.add_argument("replay", type=Path, metavar="REPLAY.SC2Replay")
    replay.add_argument(
        "picture", type=Path, nargs="?", metavar="PICTURE.gif", help="the file to write"
    )
    add_game(replay, default="auto")
    replay.number("--every", "game loops between two frames", 8)
    replay.number(
        "--player", "the player whose view is drawn; 0 for the whole map", 1, low=0, high=16
    )


def add_tasks(commands: Commands) -> None:
    tasks = commands.add_parser(
        "tasks",
        help="list the built-in tasks",
        description="List the built-in tasks: spaces, limits, scores, and whether their maps are "
        "installed.",
    )
    tasks.set_defaults(run=run_of("tasks"))
    tasks.add_argument(
        "word",
        nargs="?",
        help=f"list only the tasks of this group ({', '.join(TASK_GROUPS)}), or with this word in "
        "their names; without it, teams are listed by name only",
    )
    add_game(tasks, default="auto")
    tasks.flag("--json", "print the list as JSON")


def add_doctor(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="find faults of the game or the machine, and how to fix them",
        description="Check the installation, the machine and a running game; report faults and how "
        "to fix them. The exit status is 0 if sc2pool works with the game, else 1.",
    )
    doctor.set_defaults(run=run_of("doctor"))
    add_game(doctor, default="auto")
    doctor.flag("--json", "print the report as JSON")
    doctor.flag("--quick", "fewer resets and steps")
    doctor.flag(
        "--full",
        "also measure behaviour that the game's documentation leaves open, in about ten minutes; "
        "write the report to doctor-BaseNNNNN.json and .txt, and keep facts that later pools use",
    )
    doctor.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="with --full: the folder of the report's files (default: the current folder)",
    )
    doctor.add_argument(
        "--timeout",
        type=positive_number,
        metavar="SECONDS",
        help="time limit for examining the games (default: 600, with --full 900)",
    )


def add_bench(commands: Commands) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure how fast a task is on this machine, and with how many games",
        description="Measure a task on this machine: env steps a second, CPU time and memory for "
        "several numbers of games, the resets, and the limit of the rate.",
    )
    bench.set_defaults(run=run_of("bench.command"))
    add_task_alone(bench)
    add_game(bench, default="auto")
    bench.add_argument(
        "--n",
        type=numbers_of_games,
        default=(1, 2, 4, 8),
        metavar="N,N,…",
        help="numbers of games (default: 1,2,4,8)",
    )
    bench.number("--spares", "number of spares in the measurement of resets", 1, low=0)
    bench.add_argument(
        "--seconds",
        type=positive_number,
        default=9.0,
        help="seconds of measurement for each number of games (default: 9)",
    )
    bench.flag("--json", "print all results as JSON")
    bench.path("--png", "FILE", "draw the results")


def add_top(commands: Commands) -> None:
    top = commands.add_parser(
        "top",
        help="a live table of a running pool",
        description="A live table of a pool that runs in another terminal.",
    )
    top.set_defaults(run=run_of("running.top"))
    add_which_pool(top)
    top.flag("--once", "print the table once and exit")
    top.flag("--json", "print all statistics once, as JSON")
    top.add_argument(
        "--sort", default="env", choices=NAMES, metavar="COLUMN", help=f"one of {', '.join(NAMES)}"
    )


def add_watch(commands: Commands) -> None:
    watch = commands.add_parser(
        "watch",
        help="a local web page that shows all games of a running pool",
        description="A local web page that shows all games of a pool that runs in another "
        "terminal, side by side and live.",
    )
    watch.set_defaults(run=run_of("running.watch"))
    add_which_pool(watch)
    watch.number("--port", "port of the page (default: 8228, or a free one)", high=65535)
    watch.flag("--browser", "open the page in a browser, if there is a display")
    # The descriptor of a listening socket, passed by a pool with `render_mode="human"`.
    watch.add_argument("--listener", type=integer(0, 1 << 20), help=argparse.SUPPRESS)


def add_standin(commands: Commands) -> None:
    standin = commands.add_parser(
        "standin",
        help="the embedded game for machines without SC2",
        description="The embedded game for machines without StarCraft II. `--game auto` plays it "
        "if StarCraft II is not installed; python-sc2 and other clients play it with SC2PATH.",
    )
    standin_commands = standin.add_subparsers(required=True, metavar="COMMAND")
    path = standin_commands.add_parser(
        "path",
        help="print the folder of the installation that auto plays",
        description="Print the folder of the installation that auto plays, and write it if "
        'needed: SC2PATH="$(sc2pool standin path)" python my_bot.py',
    )
    path.set_defaults(run=run_standin_path)
    install = standin_commands.add_parser("install", help="write an installation of the stand-in")
    install.add_argument("folder", metavar="DIR", help="where to write it")
    install.add_argument(
        "--after-stop",
        choices=AFTER_STOP,
        default=AFTER_STOP[0],
        help="a game in real time after a pause: catch-up plays the missed loops, freeze "
        "continues where it stopped; the real game's behaviour is unknown (default: catch-up)",
    )
    install.flag("--any-race", "let Zerg and Protoss join a melee, with a Terran's town")
    install.add_argument(
        "--temper",
        metavar="NAME[:VALUE],...",
        help="reported behaviours of the real game that are hard on clients: kind (none), default, "
        "recorded, all, or names of the table in sc2standin/README.md (default: default)",
    )
    install.set_defaults(run=run_standin_install)


def run_of(module: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports `sc2pool.cli.MODULE` and calls `run` of that module."""

    def run(args: argparse.Namespace) -> int:
        return int(import_module(f"sc2pool.cli.{module}").run(args))

    return run


def run_player(module: str) -> Callable[[argparse.Namespace], int]:
    """Like `run_of`, but finds the player before the slow imports of torch and SB3."""

    def run(args: argparse.Namespace) -> int:
        from sc2pool.cli.chosen_player import find_player  # noqa: PLC0415

        args.chosen = find_player(args.player, args.task, args.game)
        return run_of(module)(args)

    return run


def run_standin_install(args: argparse.Namespace) -> int:
    """Write the installation by running the stand-in's own program in a child process."""
    from sc2pool.utilities import run_python  # noqa: PLC0415

    arguments = ["install", args.folder, f"--after-stop={args.after_stop}"]
    if args.any_race:
        arguments.append("--any-race")
    if args.temper is not None:
        arguments.append(f"--temper={args.temper}")
    done = run_python("sc2standin", *arguments, timeout_s=_STAND_IN_S)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


def run_standin_path(args: argparse.Namespace) -> int:  # noqa: ARG001
    """Print the folder of the stand-in's installation in the user's cache."""
    from sc2pool.integration import write_stand_in  # noqa: PLC0415

    print(write_stand_in())
    return 0


class PrintCompletion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, __: Any = None) -> None:
        try:
            with needed_for("--print-completion"):
                import shtab  # noqa: PLC0415 - an optional package
        except MissingPackageError as error:
            parser.error(str(error))
        print(shtab.complete(parser, shell))
        parser.exit()


def run_train(args: argparse.Namespace) -> int:
    from sc2pool.cli.training.options import TrainOptions, check_extras  # noqa: PLC0415

    check_extras()
    options = TrainOptions.from_args(args)
    # This import comes after the checks of the arguments, because torch and SB3 take seconds.
    from sc2pool.cli.training.train import run  # noqa: PLC0415

    return run(options)
