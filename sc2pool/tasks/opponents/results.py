"""The learner's win rates against each of its opponents, in a small file.

The trainer counts the results in the infos of ended episodes (`sc2pool.opponent`, `sc2pool.result`)
and writes the file; the workers read it. Rules: the file is replaced atomically. Older games count
less and less, because the learner changes. An episode that a fault ended has no result.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.config import is_number
from sc2pool.errors import ConfigError
from sc2pool.foreign import read_json, shown
from sc2pool.replacing import replacing

OPPONENT = "sc2pool.opponent"
RESULT = "sc2pool.result"
UNTOLD_END = "sc2pool.untold_end"
"""Info key: how the end was noticed, if the game did not report it. The result is undecided."""
CONTRADICTION = "sc2pool.contradiction"
"""Info key: both results, if the games of a match contradict each other. The match is undecided."""

_POINTS = {"win": 1.0, "loss": 0.0, "tie": 0.5, "undecided": 0.5}
_KEPT = 0.99
"""Each new game against an opponent multiplies the weights of its earlier games by this factor."""
UNKNOWN_RATE = 0.5
"""The assumed win rate against an opponent that has not played yet."""


@dataclass
class Score:
    """The results of the games against one opponent.

    Attributes:
        games: the weighted number of games: the newest game counts 1, and older games count less.
        points: the weighted sum of points: 1 for a win, 0.5 for a tie or an undecided game.
        played: the number of games.
    """

    games: float = 0.0
    points: float = 0.0
    played: int = 0

    @property
    def win_rate(self) -> float:
        """The weighted points per game."""
        return self.points / self.games if self.games else UNKNOWN_RATE

    def note(self, result: str) -> None:
        """Count a game with this result."""
        self.games = _KEPT * self.games + 1
        self.points = _KEPT * self.points + _POINTS[result]
        self.played += 1


def outcome_of(info: Mapping[str, Any]) -> tuple[str, str] | None:
    """The opponent's name and the result, from a match's last info; None for other infos."""
    opponent, result = info.get(OPPONENT), info.get(RESULT)
    return None if opponent is None or result is None else (opponent, result)


class WinRates:
    """The learner's scores against all opponents, counted in the trainer.

    Args:
        path: the file of the scores, to which new games are added.

    Raises:
        ConfigError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.scores = read_scores(path)
        self._changed = False

    def note(self, infos: Iterable[Mapping[str, Any]]) -> None:
        """Count the episodes that ended with these infos."""
        for info in infos:
            outcome = outcome_of(info)
            if outcome is not None:
                opponent, result = outcome
                self.scores.setdefault(opponent, Score()).note(result)
                self._changed = True

    def keep(self, names: Iterable[str]) -> None:
        """Keep only the scores against these opponents."""
        kept = set(names)
        self._changed |= bool(self.scores.keys() - kept)
        self.scores = {name: score for name, score in self.scores.items() if name in kept}

    def save(self) -> None:
        """Write the file if a score has changed.

        Raises:
            OSError: the file cannot be written; the old file stays.
        """
        if not self._changed:
            return
        with replacing(self._path) as unfinished:
            unfinished.write_text(json.dumps({n: vars(s) for n, s in self.scores.items()}))
        self._changed = False


def read_scores(path: Path) -> dict[str, Score]:
    """The scores by opponent, empty if the file is missing; ConfigError if it cannot be read."""
    if not path.exists():
        return {}
    kind = "a file of win rates"
    found = read_json(path, kind)
    with suppress(TypeError, AttributeError):
        scores = {name: Score(**score) for name, score in found.items()}
        if all(map(_is_score, scores.values())):
            return scores
    raise ConfigError(f"{path} is not {kind}: it has {shown(found)}")


def _is_score(score: Score) -> bool:
    """True if all numbers of a score are finite and at least 0."""
    numbers = (score.games, score.points, score.played)
    return all(is_number(one) and 0 <= one < math.inf for one in numbers)
