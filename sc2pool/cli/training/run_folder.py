"""Writes the files in a training run's folder, and reads and continues them in a resumed run.

The file model.zip has the newest policy, in SB3's format.
The file best_model.zip has the policy of the best evaluation.
The file learning_curve.png is redrawn while the run continues.
The files episodes.csv and evaluations.csv have one row for each episode or evaluation.
The file win_rates.csv has one row for each evaluation and opponent, if the run has self-play.
The folder videos has an episode of each evaluation; snapshots has the policies of self-play.
The file progress.csv has SB3's and the pool's figures, one row per update.
TensorBoard's events have the same figures.
The file config.json describes the run: it has the options, hyperparameters and versions.
The file training.lock exists while a training writes into the folder.

Rule: files beside a model are ignored if another user may have written them. The task and the game
decide which code runs, so they are read from `config.json` only if the user has named the run's
folder.

The files of episodes, evaluations and win rates are tables. The rows of a table are named tuples of
one type, whose field names are the table's header. Rules of `episodes.csv`: each episode adds one
line, and only the last line can be incomplete when the program ends. A resumed run continues its
`episodes.csv`. Rows that a full disk refuses are written with a later row. An episode that a fault
cut short is recorded with the fault, but left out of the means, because its return does not measure
the policy.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar, get_type_hints

from sc2pool.cli.stop import say
from sc2pool.cli.training.algorithms import ALGORITHMS, Algorithm
from sc2pool.errors import ConfigError
from sc2pool.utilities import (
    Archive,
    new_file,
    printable,
    read_json,
    read_table,
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
"""Files that a run copies if it continues a model from another folder."""
_OF_THE_FOLDER = ("task", "task_folder", "game")
"""Options that decide which code runs; used only if the user has named the run's folder."""
_OF_ALL = ("num_timesteps", "observation_space", "action_space", "policy_class")
"""Attributes that every saved model has."""


@contextmanager
def reserved(out: Path) -> Iterator[None]:
    """Make and lock the folder, or raise `ConfigError`; after the block, remove it if empty."""
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
        with suppress(OSError):  # a folder with files must stay
            out.rmdir()


def open_folder(out: Path, resume: Path | None, description: Mapping[str, Any]) -> None:
    """Make the folder, remove a killed trainer's unfinished files, and write `config.json`.

    If the run continues a model from another folder, that folder's records are copied, unless
    another user may have written them. Raises `ConfigError` if the folder cannot be written to, or
    if another training has begun in it since the arguments were checked; `config.json` is then
    unchanged.
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
    """True if the folder has a run's description and a model; other folders may be overwritten."""
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
    """The model's file for `--resume PATH`; a run killed early may have only `best_model.zip`."""
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
    """The env steps of the policy in this file; raises `ConfigError` if it cannot be continued."""
    try:
        with Archive(model, str(model), "an archive") as archive:
            archive.check()  # SB3 has no limits when it loads the file
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
    broken = (ConfigError, ValueError, TypeError, KeyError, RecursionError)
    with suppress(*broken), Archive(model, str(model), "a model") as archive:
        return int(archive.read_json("data")["num_timesteps"])
    return None


def _why_not(algorithm: Algorithm, data: Any, parts: Collection[str]) -> str:
    """Why a model with these attributes and files is not of this algorithm; empty if it is."""
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
    """The parts of an earlier run's description that may be used."""

    content: Mapping[str, Any]
    """The content of `config.json`; empty if it is missing or another user may have written it."""
    options: Mapping[str, Any]
    """The run's options, without those in `_OF_THE_FOLDER` unless the user has named the folder."""
    why_no_task: str
    """Why the user must give the task, for a message; empty if `options` has the task."""

    @property
    def task_folder(self) -> Path | None:
        """The folder of the task's module; None if `options` does not have it."""
        folder = self.options.get("task_folder")
        return Path(folder) if folder else None

    def say_game(self) -> str | None:
        """The run's game; None if `options` does not have it. If the game is a path, it is printed.

        The user should see the path, because a program will be started that the user has not named.
        """
        game: str | None = self.options.get("game")
        if game not in (None, "auto", "real", "standin"):
            say(f"plays the game at {game}, as its {CONFIG_FILE} says")
        return game


def describe(given: Path) -> Description:
    """The description of the run whose folder or model's file the user has named.

    Raises `ConfigError` if `config.json` cannot be read, or its options are missing or of a wrong
    type.
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
    """The path `folder`, with a number appended if this path exists already."""
    candidate, number = folder, 2
    while candidate.exists():
        candidate, number = Path(f"{folder}-{number}"), number + 1
    return candidate


# ---- the tables of a run -------------------------------------------------------------------------


WINDOW = 100
"""The mean return is taken over at most this many of the latest episodes."""


class EpisodeRow(NamedTuple):
    """One row of `episodes.csv`."""

    total_steps: int
    """Env steps of the run at the episode's end, summed over all games and parts of the run."""
    episode_return: float
    length: int
    wall_time_s: float
    """Seconds since the run's start, without the time in which the run was stopped."""
    fault: str = ""
    """The kind of the fault that cut the episode short; empty for a whole episode."""


class EpisodeLog:
    """The file `episodes.csv`, and all its `episodes` in the order in which they ended.

    `faults` counts the episodes that a fault cut short; `wall_time_s` is the run's duration up to
    its latest episode, or to its end. Episodes that ended after `steps_done`, the env steps of the
    resumed model, are dropped, because the model was saved before them.
    """

    def __init__(self, path: Path, steps_done: int = 0) -> None:
        self.episodes: list[EpisodeRow] = []
        self.faults = 0
        self.wall_time_s = 0.0
        self._latest: deque[float] = deque(maxlen=WINDOW)
        self._path = path
        for episode in read_rows(path, EpisodeRow):
            if episode.total_steps <= steps_done:
                self._count(episode)
        self._file: TextIO | None = None
        with suppress(OSError):
            self._file = self._write_all()

    def end(self, wall_time_s: float) -> None:
        """Record the run's duration at the end of the training."""
        self.wall_time_s = wall_time_s

    def add(self, episode: EpisodeRow) -> None:
        self._count(episode)
        try:
            if self._file is None:
                self._file = self._write_all()
            else:
                csv.writer(self._file).writerow(episode)
        except OSError:
            self.close()

    def _write_all(self) -> TextIO:
        """Replace the file by one with all episodes; returns the new file, open for more rows."""
        write_rows(self._path, EpisodeRow, self.episodes)
        return self._path.open("a", buffering=1, newline="")

    def _count(self, episode: EpisodeRow) -> None:
        self.episodes.append(episode)
        self.wall_time_s = episode.wall_time_s
        if episode.fault:
            self.faults += 1
        else:
            self._latest.append(episode.episode_return)

    def mean_return(self) -> float:
        """The mean return of the latest `WINDOW` whole episodes; NaN before the first episode."""
        return sum(self._latest) / len(self._latest) if self._latest else math.nan

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk may refuse buffered rows
                self._file.close()
            self._file = None


Row = TypeVar("Row", bound=NamedTuple)


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """The rows in a file, without an incomplete last line; empty if the file is missing.

    Raises `ConfigError` if the file cannot be read, or its rows are not of this kind.
    """
    if not path.exists():
        return []
    types = list(get_type_hints(kind).values())
    return [_row(path, kind, types, cells) for cells in islice(read_table(path), 1, None)]


def _row(path: Path, kind: type[Row], types: Sequence[type], cells: Sequence[str]) -> Row:
    with suppress(ValueError):
        row = kind(*(of(cell) for of, cell in zip(types, cells, strict=True)))
        if all(math.isfinite(one) for one in row if isinstance(one, float)):
            return row
    names = ", ".join(kind._fields)
    raise ConfigError(f"{path}: expected a row of {names}, got {shown(cells)}")


def keep_rows(
    path: Path, kind: type[Row], rows: list[Row], keep: Callable[[Row], bool]
) -> list[Row]:
    """Drop the rows for which `keep` is false, also from the file; returns the kept rows.

    If the disk refuses the new file, the next `write_rows` removes the dropped rows from the file.
    """
    kept = list(filter(keep, rows))
    if kept != rows:
        with suppress(OSError):
            write_rows(path, kind, kept)
    return kept


def write_rows(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Replace a file by one with these rows; after an `OSError`, the old file is unchanged."""
    with replacing(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(kind._fields)
        writer.writerows(rows)
