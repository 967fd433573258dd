"""The command line of `sc2pool train`: its options, and what it runs.

Rule: the run's own modules are imported when it runs.
"""

from __future__ import annotations

import argparse
import os

from sc2pool.cli.options import Commands, add_game, add_ray, add_task_alone
from sc2pool.cli.training.settings.algorithms import ALGORITHMS
from sc2pool.cli.training.settings.self_play import MODES


def add_train(commands: Commands) -> None:
    """`sc2pool train`. An option that is not given is None: a resumed run may know it."""
    train = commands.add_parser(
        "train",
        # `scripts/train` sets its own name, so that usage and hints can be copied.
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
    train.number("--n", "number of games (default: 8)")
    train.flag("--realtime", "the games run by themselves, 22.4 loops a second", default=None)
    train.number("--spares", "more games that hold the next episodes ready (default: 0)", low=0)
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
        "evaluate the policy this often, in games of its own, and keep the best model "
        "(default: never)",
        metavar="STEPS",
    )
    train.number("--eval-episodes", "episodes of an evaluation (default: 10)", metavar="N")
    train.flag(
        "--video",
        "record an episode of each evaluation, the one after the training included",
        default=None,
    )
    train.add_argument(
        "--self-play",
        nargs="?",
        const=MODES[0],
        choices=MODES,
        metavar="MODE",
        help="for a task of two players, which is always trained so: the policy plays both sides "
        f"(shared, if no MODE is given), or one side against its own snapshots "
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


def run_train(args: argparse.Namespace) -> int:
    """Check the options, then train."""
    from sc2pool.cli.training.settings.options import TrainOptions, check_extras  # noqa: PLC0415

    check_extras()
    options = TrainOptions.from_args(args)
    # torch and SB3 take seconds to import: only now, when the arguments are known to be good.
    from sc2pool.cli.training.train import run  # noqa: PLC0415

    return run(options)
