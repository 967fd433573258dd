"""What a training run was asked to do, checked before anything heavy starts.

Rules: no torch, no SB3 and no running game here, so a bad argument is answered within a second;
the run's folder is only looked at. What the command line leaves open comes from the resumed run,
then from the defaults.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.cli.hyperparameters import settings_for
from sc2pool.errors import ConfigError
from sc2pool.game.installation import find, find_map
from sc2pool.tasks.registry import resolve

MODEL_FILE = "model.zip"
CONFIG_FILE = "config.json"


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
    """What was asked for: auto, real, or an installation's folder."""
    installation: Path | None = None
    """The folder of the game to play, found by `game`."""
    device: str = "cpu"
    metrics_port: int | None = None
    """See `PoolConfig`."""
    resume: Path | None = None
    """The model file to go on from."""
    steps_done: int = 0
    """Env steps that model was trained for."""

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> TrainOptions:
        """Check the command line's arguments and fill in what they leave open.

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
        return cls(
            out=choose_out(args.out, model, task),
            task=task,
            n=choose("n", cls.n),
            steps=steps,
            seed=choose("seed", cls.seed),
            game=game,
            installation=find_game(game, task),
            device=choose("device", cls.device),
            metrics_port=check_metrics(choose("metrics_port", cls.metrics_port)),
            resume=model,
            steps_done=steps_done,
        )


def check_extras() -> None:
    """Raise `ConfigError` if what only training needs is not installed."""
    missing = [
        name for name in ("matplotlib", "rich", "tensorboard") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise ConfigError(
            f"training needs {', '.join(missing)}: pip install 'sc2pool[train]', or ./scripts/train"
        )


def check_metrics(port: int | None) -> int | None:
    """The port; `ConfigError` if nothing could be served there."""
    if port is not None and importlib.util.find_spec("prometheus_client") is None:
        raise ConfigError("--metrics-port needs prometheus_client: pip install 'sc2pool[metrics]'")
    return port


def find_game(game: str, task: str) -> Path:
    """The folder of an installation that has the task's map.

    Raises:
        ConfigError: no such task, no such game, no such map.
    """
    definition = resolve(task)
    installation = find(game)
    find_map(installation, definition.map_name)
    return installation.root


def find_model(path: Path) -> Path:
    """The model file meant by `--resume PATH`, a run's folder or the file itself."""
    if not path.exists():
        raise ConfigError(f"--resume {path}: no such file or folder")
    model = path / MODEL_FILE if path.is_dir() else path
    if not model.exists():
        raise ConfigError(f"--resume {path}: no {MODEL_FILE} in it, so nothing to go on from")
    return model


def read_steps(model: Path) -> int:
    """How many env steps the policy in this file was trained for."""
    try:
        with zipfile.ZipFile(model) as archive:
            return int(json.loads(archive.read("data"))["num_timesteps"])
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ConfigError(f"--resume {model}: not a model saved by training ({error})") from error


def read_config(folder: Path) -> dict[str, Any]:
    """The options of an earlier run, empty if it left none."""
    try:
        return dict(json.loads((folder / CONFIG_FILE).read_text())["options"])
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder / CONFIG_FILE} is not a run's description: {error}") from error


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


def unused(folder: Path) -> Path:
    """`folder`, with a number behind it if there is one of that name."""
    candidate, number = folder, 2
    while candidate.exists():
        candidate, number = Path(f"{folder}-{number}"), number + 1
    return candidate


def check_writable(folder: Path, option: str) -> None:
    """Raise `ConfigError` unless files can be written into `folder`, or it can be made."""
    existing = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if exists(path)
    )
    if not existing.is_dir():
        raise ConfigError(f"{option} {folder}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {folder}: no right to write into {existing}")


def exists(path: Path) -> bool:
    """Whether there is something at `path`; below a file, or out of reach, there is not."""
    try:
        return path.exists()
    except OSError:
        return False
