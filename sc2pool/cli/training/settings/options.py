"""The options of a training run, checked before anything heavy starts.

Rules: no torch, no SB3 and no running game here, so a bad argument is answered within a second;
nothing is written. What the command line leaves open comes from the resumed run, then from the
defaults.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.cli.arguments import check_writable, find_game
from sc2pool.cli.training.hyperparameters import settings_for
from sc2pool.cli.training.run_folder import CONFIG_FILE, find_model, read_config, read_steps, unused
from sc2pool.errors import ConfigError
from sc2pool.optional import EXTRAS, require


@dataclass(frozen=True)
class TrainOptions:
    """A checked training run."""

    out: Path
    """The run's folder; need not exist."""
    task: str = "MoveToBeacon"
    n: int = 8
    steps: int = settings_for("MoveToBeacon").default_steps
    """Env steps in all, those before a resume included."""
    seed: int | None = None
    game: str = "auto"
    """As given: auto, real, or an installation's folder."""
    installation: Path | None = None
    """The folder of the game to play, found by way of `game`."""
    device: str = "cpu"
    metrics_port: int | None = None
    """See `PoolConfig`."""
    resume: Path | None = None
    """The model file to continue from."""
    steps_done: int = 0
    """Env steps that model has been trained for."""

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> TrainOptions:
        """Check the command line's arguments and fill in those that are missing.

        Raises:
            ConfigError: an argument that cannot work, named with what was expected.
        """
        model = None if args.resume is None else find_model(args.resume)
        steps_done = 0 if model is None else read_steps(model)
        resumed = {} if model is None else read_config(model.parent)

        def choose(name: str, default: Any) -> Any:
            given = getattr(args, name)
            return given if given is not None else resumed.get(name, default)

        task = choose("task", cls.task)
        steps = choose("steps", settings_for(task).default_steps)
        game = choose("game", cls.game)
        if resumed and task != resumed["task"]:
            raise ConfigError(f"--task {task}: {args.resume} is a run of task {resumed['task']}")
        if steps <= steps_done:
            raise ConfigError(f"{args.resume} has {steps_done} steps already: give more as --steps")
        metrics_port = choose("metrics_port", cls.metrics_port)
        if metrics_port is not None:
            require("--metrics-port", "prometheus_client")
        return cls(
            out=choose_out(args.out, model, task),
            task=task,
            n=choose("n", cls.n),
            steps=steps,
            seed=choose("seed", cls.seed),
            game=game,
            installation=find_game(game, task),
            device=choose("device", cls.device),
            metrics_port=metrics_port,
            resume=model,
            steps_done=steps_done,
        )


def check_extras() -> None:
    """Raise `ConfigError` if a package that only training needs is not installed."""
    needed = ("matplotlib", "stable_baselines3", "tensorboard")
    missing = [EXTRAS[name][0] for name in needed if not importlib.util.find_spec(name)]
    if missing:
        raise ConfigError(
            f"training needs {', '.join(missing)}: pip install 'sc2pool[train]', or ./scripts/train"
        )


def choose_out(given: Path | None, model: Path | None, task: str) -> Path:
    """The run's folder: as given, else the resumed run's, else a new one below `runs`."""
    if model is not None and (given is None or given.resolve() == model.parent.resolve()):
        out = model.parent
    elif given is not None:
        out = given
        if (out / CONFIG_FILE).exists():
            raise ConfigError(
                f"--out {out} already holds a run: choose another folder, or --resume {out}"
            )
    else:
        out = unused(Path("runs") / f"{task}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_writable(out, "--out")
    return out
