"""Reads and checks arguments that several commands have, before anything slow is imported."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sc2pool.cli.stop import say
from sc2pool.errors import ConfigError, MissingPackageError
from sc2pool.integration import MOST_GAMES, find_installation, find_map, resolve_task
from sc2pool.utilities import why_not_ours

if TYPE_CHECKING:
    from sc2pool.integration import TaskDefinition


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """A function with which argparse parses a whole number from `low` to `high`.

    A large number may be written as `150000`, `150,000`, `150_000` or `1.5e5`.
    """
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"

    def read(text: str) -> int:
        with suppress(ValueError, OverflowError):
            value = _whole(text)
            if low <= value and (high is None or value <= high):
                return value
        raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")

    return read


def _whole(text: str) -> int:
    """Parse a whole number; raises `ValueError` or `OverflowError` for any other text."""
    if "e" in text.lower():
        value = float(text)
        if value != int(value):
            raise ValueError(text)
        return int(value)
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        text = text.replace(",", "")
    return int(text)


def numbers_of_games(text: str) -> tuple[int, ...]:
    """Parse several numbers of games, such as `1,2,4`, for argparse."""
    return tuple(map(integer(1, MOST_GAMES), text.split(",")))


def positive_number(text: str) -> float:
    with suppress(ValueError):
        value = float(text)
        if 0 < value < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")


def hint(given: str, known: Iterable[str]) -> str:
    """A text that suggests a similar known word; empty if no known word is similar."""
    without_dashes = {name.lstrip("-"): name for name in known}
    close = difflib.get_close_matches(given.lstrip("-"), without_dashes, n=1)
    return f"; did you mean {without_dashes[close[0]]}?" if close else ""


def task_of(args: argparse.Namespace) -> str | None:
    """The task from the option or the argument; raises `ConfigError` if both are given."""
    option, alone = args.task, args.task_alone
    if option is not None and alone is not None:
        raise ConfigError(f"the task is given twice: {alone}, --task {option}")
    return option if alone is None else alone  # type: ignore[no-any-return]


def task_class(
    task: str, *, named: bool = True, folder: Path | None = None
) -> type[TaskDefinition]:
    """The class of a built-in task, or of a user's task that is given as `module:Class`.

    The working directory is added to the import path only for a user's task, because other users
    may have written files there. `folder` is a run's task folder: if the module is in `folder`,
    that folder is added instead of the working directory. A folder to which every user can write is
    never added. A folder to which another user can write is added only if the user has named the
    task (`named`). Raises `ConfigError` if `resolve_task` does, or if the folder is unsafe.
    """
    if ":" not in task:
        return resolve_task(task)
    why = ""
    with suppress(FileNotFoundError):
        here = Path.cwd()
        known = (str(here), *sys.path)
        if folder is not None and str(folder) not in known and _holds_module(folder, task):
            here = folder
            say(f"takes the module of {task} from {folder}, as the run did")
        found = here.stat()
        if not named or found.st_mode & stat.S_IWOTH:
            why = why_not_ours(found)
        # A folder `google` with an `__init__.py` would hide protobuf's namespace package `google`.
        # Therefore import protobuf's package before a folder is added to the path.
        import_module("google")
        if not why and str(here) not in sys.path:
            sys.path.append(str(here))
    try:
        return resolve_task(task)
    except ConfigError as error:
        if not why or isinstance(error, MissingPackageError):
            raise
        raise ConfigError(
            f"{error}; no module is taken from {here}, because {why}: set PYTHONPATH to take one"
        ) from error


def _holds_module(folder: Path, task: str) -> bool:
    """True if the folder has the module of this task (`module:Class`)."""
    top = folder / task.partition(":")[0].partition(".")[0]
    return top.is_dir() or top.with_suffix(".py").is_file()


def folder_of_task(task: str) -> str:
    """The folder of an imported task's module or package; empty for a built-in task."""
    top = sys.modules.get(task.partition(":")[0].partition(".")[0])
    if ":" not in task or top is None or not top.__spec__:
        return ""
    package = list(top.__spec__.submodule_search_locations or ())
    place = package[0] if package else top.__spec__.origin
    return "" if place is None else str(Path(place).absolute().parent)


def find_game(game: str, task: str | type[TaskDefinition], *, says: bool = True) -> Path:
    """The folder of an installation with the task's map; for `says`, see `find_installation`.

    Raises `ConfigError` if the task is unknown, or if the game or the map is missing.
    """
    definition = task_class(task) if isinstance(task, str) else task
    installation = find_installation(game, says=says)
    find_map(installation, definition.map_name)
    return installation.root


def check_file(file: Path, option: str, suffixes: Sequence[str] = ()) -> None:
    """Raise `ConfigError` unless `file` can be written and its name has one of the suffixes."""
    mode = _mode_of(file, option)
    if stat.S_ISDIR(mode):
        raise ConfigError(f"{option} {file} is a folder, expected a file's name")
    if mode and not stat.S_ISREG(mode):
        raise ConfigError(f"{option} {file} is a device or a pipe, expected a file to replace")
    if suffixes and file.suffix.lower() not in suffixes:
        raise ConfigError(f"{option} {file}: the name must end with {' or '.join(suffixes)}")
    check_writable(file.parent, option)


def _mode_of(path: Path, option: str) -> int:
    """A file's mode; 0 if there is no file. Raises `ConfigError` if the name is too long."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return 0
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}") from None


def check_writable(folder: Path, option: str) -> None:
    """Raise `ConfigError` unless files can be written into `folder`, which may not exist yet."""
    _mode_of(folder, option)
    candidates = (folder.absolute(), *folder.absolute().parents)
    # Unlike `Path.exists`, `os.path.exists` is False for a path that may not be read.
    existing = next((path for path in candidates if os.path.exists(path)), None)  # noqa: PTH110
    if existing is None:  # on Windows
        raise ConfigError(f"{option} {folder}: there is no drive {candidates[-1]}")
    if not existing.is_dir():
        raise ConfigError(f"{option} {folder}: {existing} is not a folder")
    try:  # `os.access` would be wrong for root in /proc, and for all users on Windows
        with tempfile.TemporaryDirectory(dir=existing):
            pass
    except OSError as error:
        raise ConfigError(
            f"{option} {folder}: cannot write into {existing} ({error.strerror or error})"
        ) from None
