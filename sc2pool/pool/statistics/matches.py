"""The results of a pool's matches, for each of the learner's opponents.

    last info of an episode ─► outcome_of ─► MatchCounter ─► PoolStats.matches

These are plain counts of one pool. A `SnapshotStore` keeps its own results to weigh its opponents
(`sc2pool.tasks.opponents.results`). Rules: an episode that a fault cut short has no result, and an
episode in which the learner plays both sides has no opponent. Neither is counted. A pool lists at
most `MOST_OPPONENTS`. The counts of those that it has not met for longest are summed in `OTHERS`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

MOST_OPPONENTS: Final = 50
"""How many opponents are listed by name, as many as a `SnapshotStore` keeps by default."""
OTHERS: Final = "others"
"""The entry for all opponents without an entry of their own."""


@dataclass(frozen=True)
class MatchResults:
    """The finished matches against one opponent, from the learner's view.

    Attributes:
        win: how many the learner won.
        loss: how many the learner lost.
        tie: how many ended in a tie.
        undecided: how many the task ended while the game continued.
    """

    win: int = 0
    loss: int = 0
    tie: int = 0
    undecided: int = 0

    @property
    def played(self) -> int:
        """The number of matches."""
        return self.win + self.loss + self.tie + self.undecided

    @property
    def win_rate(self) -> float:
        """The share of matches won; 0 before the first match."""
        return self.win / self.played if self.played else 0.0


class MatchCounter:
    """Counts the matches of one pool."""

    def __init__(self) -> None:
        self._by_opponent: OrderedDict[str, Counter[str]] = OrderedDict()
        """Counts by opponent, the one met last at the end; without `OTHERS`."""
        self._others: Counter[str] = Counter()

    def count(self, opponent: str, result: str) -> None:
        """Count a finished match; the result is the name of a field of `MatchResults`."""
        counts = self._by_opponent.setdefault(opponent, Counter())
        counts[result] += 1
        self._by_opponent.move_to_end(opponent)
        if len(self._by_opponent) > MOST_OPPONENTS:
            _, oldest = self._by_opponent.popitem(last=False)
            self._others.update(oldest)

    def results(self) -> dict[str, MatchResults]:
        """The results by opponent, the one met last first; `OTHERS` at the end."""
        found = {name: MatchResults(**each) for name, each in reversed(self._by_opponent.items())}
        if not self._others:
            return found
        return summed([found, {OTHERS: MatchResults(**self._others)}])


def summed(parts: Iterable[Mapping[str, MatchResults]]) -> dict[str, MatchResults]:
    """The sums of the results of several pools."""
    whole: dict[str, Counter[str]] = {}
    for part in parts:
        for name, results in part.items():
            whole.setdefault(name, Counter()).update(vars(results))
    return {name: MatchResults(**counts) for name, counts in whole.items()}
