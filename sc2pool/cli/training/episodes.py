"""Records the episodes of a run: a row for each in a CSV file, and the mean of the latest.

Each CSV file of a run has rows of one named tuple, and the names of its fields as the header.

Rules: the file grows by one line per episode, and only its last line can be cut off when the
program ends. A resumed run continues the same file. Rows that a full disk refuses are written with
a later row. An episode that a fault cut short is recorded with the fault, but is left out of the
means, because its return says nothing about the policy.
"""

from __future__ import annotations

import csv
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO, TypeVar, get_type_hints

from sc2pool.errors import ConfigError
from sc2pool.utilities import read_table, replacing, shown

WINDOW = 100
"""How many of the latest episodes the mean return covers."""


class EpisodeRow(NamedTuple):
    """One row of the file."""

    total_steps: int
    """Env steps of the whole run at the episode's end."""
    episode_return: float
    length: int
    """Env steps of the episode."""
    wall_time_s: float
    """Seconds since the run's start, without the time between a stop and a resume."""
    fault: str = ""
    """The kind of the fault that cut the episode short; empty for a whole episode."""


class EpisodeLog:
    """The file `episodes.csv` and the episodes in it.

    Attributes:
        episodes: all episodes, in the order of their ends.
        faults: the number of episodes that a fault cut short.
        wall_time_s: the run's duration up to its latest episode, or to its end.

    Args:
        path: the CSV file; created if it does not exist.
        steps_done: env steps of the resumed model. Later episodes in the file are dropped, because
            they were played after that model was saved.
    """

    def __init__(self, path: Path, steps_done: int = 0) -> None:
        self.episodes: list[EpisodeRow] = []
        self.faults = 0
        self.wall_time_s = 0.0
        self._latest: deque[float] = deque(maxlen=WINDOW)
        self._path = path
        for episode in read_episodes(path):
            if episode.total_steps <= steps_done:
                self._count(episode)
        self._file: TextIO | None = None
        with suppress(OSError):
            self._file = self._write_all()

    def end(self, wall_time_s: float) -> None:
        """Record that the training ended this long after the run's start."""
        self.wall_time_s = wall_time_s

    def add(self, episode: EpisodeRow) -> None:
        """Record an episode."""
        self._count(episode)
        try:
            if self._file is None:
                self._file = self._write_all()
            else:
                csv.writer(self._file).writerow(episode)
        except OSError:
            self.close()
            self._file = None

    def _write_all(self) -> TextIO:
        """Write all episodes so far, and return the file, open for further rows.

        Raises:
            OSError: the file cannot be written; an earlier file is unchanged.
        """
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
        """The mean return of the latest `WINDOW` whole episodes; NaN before the first."""
        return sum(self._latest) / len(self._latest) if self._latest else math.nan

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses the buffered rows again
                self._file.close()


def read_episodes(path: Path) -> list[EpisodeRow]:
    """The episodes in a file; see `read_rows`."""
    return read_rows(path, EpisodeRow)


Row = TypeVar("Row", bound=NamedTuple)


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """The rows in a file, without a last line that was cut off; empty if the file is missing.

    Raises:
        ConfigError: the file cannot be read, or has other rows.
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
    """Filter `rows`, which a file has, and remove the other rows from the file.

    If the disk refuses this, the next `write_rows` removes them.

    Returns:
        The rows that are kept.
    """
    kept = list(filter(keep, rows))
    if kept != rows:
        with suppress(OSError):
            write_rows(path, kind, kept)
    return kept


def write_rows(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Replace a file by one with these rows.

    Raises:
        OSError: the file cannot be written; the earlier file is unchanged.
    """
    with replacing(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(kind._fields)
        writer.writerows(rows)
