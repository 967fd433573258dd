"""The results of a run's evaluations against fixed opponents: a row for each in a CSV file.

Rule: a resumed run continues the file, without the rows of a later time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sc2pool.cli.training.figures.records import keep_rows, read_rows, write_rows
from sc2pool.errors import ConfigError
from sc2pool.foreign import shown


class ResultRow(NamedTuple):
    """The matches of one evaluation against one opponent."""

    total_steps: int
    """Env steps that the policy had been trained for."""
    opponent: str
    games: int
    """That no fault cut short."""
    wins: int
    losses: int

    @property
    def win_rate(self) -> float:
        """Wins per game; ties and matches that the time limit ended are not won."""
        return self.wins / self.games

    def __str__(self) -> str:
        return f"won {self.wins} of {self.games} against {self.opponent}"


class ResultLog:
    """The file and what is in it.

    Attributes:
        rows: in the order in which they were added.

    Args:
        path: the CSV file.
        steps_done: env steps of the resumed model; later rows are dropped.
    """

    def __init__(self, path: Path, steps_done: int = 0) -> None:
        self._path = path
        self.rows = keep_rows(
            path, ResultRow, read_results(path), lambda row: row.total_steps <= steps_done
        )

    def add(self, row: ResultRow) -> None:
        """Record a row.

        Raises:
            OSError: it cannot be written; it is written with a later one.
        """
        self.rows.append(row)
        write_rows(self._path, ResultRow, self.rows)

    def latest(self) -> Mapping[str, ResultRow]:
        """The newest row against each opponent."""
        return {row.opponent: row for row in self.rows}


def best_of(rows: Sequence[ResultRow]) -> ResultRow | None:
    """A row of the evaluation with the highest win rates together; None if there is none."""
    quality: dict[int, float] = {}
    for row in rows:
        quality[row.total_steps] = quality.get(row.total_steps, 0.0) + row.win_rate
    return max(rows, key=lambda row: quality[row.total_steps], default=None)


def read_results(path: Path) -> list[ResultRow]:
    """The rows in a file; see `read_rows`."""
    rows = read_rows(path, ResultRow)
    for row in rows:
        if not (row.games >= 1 and min(row.wins, row.losses) >= 0):
            raise ConfigError(f"{path}: expected matches and how many were won, got {shown(row)}")
    return rows
