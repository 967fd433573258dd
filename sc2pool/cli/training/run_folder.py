"""The folder of a training run: its files, and the data that a resumed run reads from them.

model.zip            the policy; SB3's format
best_model.zip       the policy of the best evaluation
learning_curve.png   redrawn while the run continues
episodes.csv         one row per episode
evaluations.csv      one row per evaluation
win_rates.csv        with self-play: one row per evaluation and opponent
snapshots            with self-play: earlier policies
videos               an episode of each evaluation
progress.csv         SB3's figures and the pool's, one row per update; also as TensorBoard events
config.json          options, hyperparameters and versions
training.lock        while a training writes into the folder

Rule: files beside a model are ignored if another user can have written them. Task and game, which
decide which code runs, are read from a run's description only if the user has named its folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.cli.stop import say
from sc2pool.cli.training.algorithms import ALGORITHMS, Algorithm
from sc2pool.errors import ConfigError
from sc2pool.utilities import (
    Archive,
    new_file,
    printable,
    read_json,
    remove_unfinished,
    replacing,
    reserve,
    shown,
    unlock_and_remove,
    why_not_ours,
)

MODEL_FILE = "model.zip"
BEST_MODEL_FILE = "best_model.zip"
EVALUATIONS_FILE = "evaluations.csv"
VIDEOS_FOLDER = "videos"
WIN_RATES_FILE = "win_rates.csv"
SNAPSHOTS_FOLDER = "snapshots"
CURVE_FILE = "learning_curve.png"
EPISODES_FILE = "episodes.csv"
PROGRESS_FILE = "progress.csv"
CONFIG_FILE = "config.json"
LOCK_FILE = "training.lock"

_KEPT_FILES = (EPISODES_FILE, PROGRESS_FILE, EVALUATIONS_FILE, WIN_RATES_FILE, BEST_MODEL_FILE)
"""Files that are copied from the resumed run."""
_OF_THE_FOLDER = ("task", "task_folder", "game")
"""Options that decide which code runs; they count only if the user has named the run's folder."""
_OF_ALL = ("num_timesteps", "observation_space", "action_space", "policy_class")
"""Attributes that every saved model has."""


@contextmanager
def reserved(out: Path) -> Iterator[None]:
    """Make the folder if necessary, and lock it; remove it at the end if it is empty.

    Raises:
        ConfigError: the folder cannot be made or written to, or another training writes into it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = new_file(out / "probe")
        try:
            probe.write_bytes(b"!")
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise _not_writable(out, error) from error
    lock = out / LOCK_FILE
    held = reserve(lock, "another training writes into this folder")
    try:
        yield
    finally:
        if held is not None:
            unlock_and_remove(held, lock)
        with suppress(OSError):  # the folder is not empty
            out.rmdir()


def open_folder(out: Path, resume: Path | None, description: Mapping[str, Any]) -> None:
    """Make the folder, remove a killed trainer's unfinished files, and write `config.json`.

    Args:
        out: the folder.
        resume: the model file that the run continues. The records beside it are copied, if no
            other user can have written them.
        description: the content of `config.json`.

    Raises:
        ConfigError: another training has begun in the folder since the arguments were checked, or
            the folder cannot be written to; an existing `config.json` is unchanged.
    """
    goes_on = resume is not None and resume.parent.resolve() == out.resolve()
    if not goes_on and holds_run(out):
        raise ConfigError(f"--out {out}: another training has just begun in it")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if resume is not None and not goes_on and not why_not_ours(resume.parent.stat()):
            _copy_records(resume.parent, out)
        for folder in (out, out / VIDEOS_FOLDER, out / SNAPSHOTS_FOLDER):
            remove_unfinished(folder)
        with replacing(out / CONFIG_FILE) as unfinished:
            unfinished.write_text(json.dumps(description, indent=2, default=str) + "\n")
    except OSError as error:
        raise _not_writable(out, error) from error


def holds_run(out: Path) -> bool:
    """True if the folder has a run's description and a model; else it may be overwritten."""
    models = (MODEL_FILE, BEST_MODEL_FILE)
    return (out / CONFIG_FILE).exists() and any((out / name).exists() for name in models)


def _copy_records(earlier: Path, out: Path) -> None:
    for name in _KEPT_FILES:
        if (earlier / name).exists():
            shutil.copy(earlier / name, out / name)
    if (earlier / SNAPSHOTS_FOLDER).exists():
        shutil.copytree(earlier / SNAPSHOTS_FOLDER, out / SNAPSHOTS_FOLDER, dirs_exist_ok=True)


def _not_writable(out: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--out {out}: cannot be written to ({error.strerror or error})")


def find_model(path: Path) -> Path:
    """The model file of `--resume PATH`, which is a run's folder or the file itself.

    A run that was killed before its first save may have only a best model.
    """
    if not path.exists():
        raise ConfigError(f"--resume {path}: no such file or folder")
    if not path.is_dir():
        return path
    found = [path / name for name in (MODEL_FILE, BEST_MODEL_FILE) if (path / name).exists()]
    if not found:
        raise ConfigError(
            f"--resume {path}: no {MODEL_FILE} in it, so there is nothing to continue"
        )
    return found[0]


def read_steps(model: Path, algo: str) -> int:
    """The env steps for which the policy in this file was trained.

    Args:
        model: the file.
        algo: the algorithm that continues the training.

    Raises:
        ConfigError: the algorithm cannot continue from this file; one line gives the reason.
    """
    try:
        with Archive(model, str(model), "an archive") as archive:
            archive.check()  # because SB3 loads the file without limits
            data = archive.read_json("data")
            parts = archive.parts
    except (ConfigError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"--resume {model}: not a model saved by training ({printable(str(error))})"
        ) from error
    algorithm = ALGORITHMS[algo]
    wrong = _why_not(algorithm, data, parts)
    if wrong:
        raise ConfigError(
            f"--resume {model}: not a model of {algorithm.class_name} saved by training ({wrong})"
        )
    return int(data["num_timesteps"])


def saved_steps(model: Path) -> int | None:
    """The env steps for which the policy in this file was trained; None without a valid file."""
    try:
        with Archive(model, str(model), "a model") as archive:
            return int(archive.read_json("data")["num_timesteps"])
    except (ConfigError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _why_not(algorithm: Algorithm, data: Any, parts: Collection[str]) -> str:
    """Why a saved model is not one of the algorithm; empty if it is.

    Args:
        algorithm: the algorithm that continues the training.
        data: the saved attributes.
        parts: the names of the archive's parts.
    """
    if not isinstance(data, dict):
        return f"its data is a {type(data).__name__}, expected a dict"
    files = ["policy.pth", *(f"{name}.optimizer.pth" for name in algorithm.optimizers)]
    lacking = [name for name in (*_OF_ALL, *algorithm.attributes) if name not in data]
    lacking += [name for name in files if name not in parts]
    if lacking:
        return f"it lacks {', '.join(lacking)}"
    too_much = [name for name in algorithm.lacks if name in data]
    if too_much:
        return f"it has {', '.join(too_much)}"
    steps = data["num_timesteps"]
    if type(steps) is not int or steps < 0:
        return f"num_timesteps is {shown(steps)}, expected a whole number of at least 0"
    policy = data["policy_class"]
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if module != algorithm.policy_module:
        return f"its policy is of {shown(module)}, expected one of {algorithm.policy_module}"
    return ""


@dataclass(frozen=True)
class Description:
    """The description of an earlier run, as far as it may be used."""

    content: Mapping[str, Any]
    """The content of `config.json`; empty without one, or if another user can have written it."""
    options: Mapping[str, Any]
    """The run's options; `_OF_THE_FOLDER` are included only if they may be used."""
    why_no_task: str
    """Why the user must give the task; empty if the options have it."""

    @property
    def task_folder(self) -> Path | None:
        """The folder of the task's module; None if the options do not have it."""
        folder = self.options.get("task_folder")
        return Path(folder) if folder else None

    def say_game(self) -> str | None:
        """The run's game, or None if the options do not have it; a path is printed.

        The path is printed because the user has not named this program, and it will be started.
        """
        game: str | None = self.options.get("game")
        if game not in (None, "auto", "real", "standin"):
            say(f"plays the game at {game}, as its {CONFIG_FILE} says")
        return game


def describe(given: Path) -> Description:
    """The description of the run that a user has named, by its folder or by a model's file.

    Raises:
        ConfigError: the description cannot be read, has no options, or has a wrong type for one
            of `_OF_THE_FOLDER`.
    """
    folder = given if given.is_dir() else given.parent
    path = folder / CONFIG_FILE
    if not path.exists():
        return Description({}, {}, "nothing beside it says which task it plays")
    why = why_not_ours(folder.stat()) or why_not_ours(path.stat())
    if why:
        return Description({}, {}, f"{path} is not used, because {why}")
    kind = "a run's description"
    content = read_json(path, kind, only_ours=True)
    options = content.get("options") if isinstance(content, dict) else None
    if not isinstance(options, dict):
        raise ConfigError(f"{path} is not {kind}: it has no options")
    for name in _OF_THE_FOLDER:
        if not isinstance(options.get(name, ""), str):
            raise ConfigError(f"{path}: {name} must be of type str, got {shown(options[name])}")
    if not given.is_dir():
        options = {name: value for name, value in options.items() if name not in _OF_THE_FOLDER}
        return Description(content, options, "a model's file alone does not say its task")
    return Description(content, options, "" if "task" in options else f"{path} has no task")


def unused(folder: Path) -> Path:
    """`folder`, with a number appended if it exists."""
    candidate, number = folder, 2
    while candidate.exists():
        candidate, number = Path(f"{folder}-{number}"), number + 1
    return candidate
