"""The results of a run's evaluations against fixed opponents: a row for each in a CSV file.

Rule: a resumed run continues the file, without the rows of a later time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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
        best_steps: env steps of the best model that is saved, whose rows stay.
    """

    def __init__(self, path: Path, steps_done: int = 0, best_steps: int | None = None) -> None:
        self._path = path
        self.rows = keep_rows(
            path,
            ResultRow,
            read_results(path),
            lambda row: row.total_steps <= steps_done or row.total_steps == best_steps,
        )

    def add(self, *rows: ResultRow) -> None:
        """Record the rows of an evaluation.

        Raises:
            OSError: they cannot be written; they are written with later ones.
        """
        self.rows.extend(rows)
        write_rows(self._path, ResultRow, self.rows)

    def latest(self) -> Mapping[str, ResultRow]:
        """The newest row against each opponent."""
        return {row.opponent: row for row in self.rows}

    def quality(self, steps: int | None) -> float | None:
        """The sum of the win rates of the policy of these env steps; None if it has no evaluation.

        If a resumed run has evaluated again at these steps, the better evaluation counts.
        """
        found: dict[str, list[float]] = defaultdict(list)
        for row in self.rows:
            if row.total_steps == steps:
                found[row.opponent].append(row.win_rate)
        return max(map(sum, zip(*found.values(), strict=False)), default=None)


def read_results(path: Path) -> list[ResultRow]:
    """The rows in a file; see `read_rows`."""
    rows = read_rows(path, ResultRow)
    for row in rows:
        if not (row.games >= 1 and min(row.wins, row.losses) >= 0):
            raise ConfigError(f"{path}: expected matches and how many were won, got {shown(row)}")
    return rows
