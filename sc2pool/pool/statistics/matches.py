"""How a pool's matches came out, for each of the learner's opponents.

    last info of an episode ─► outcome_of ─► MatchCounter ─► PoolStats.matches

These are plain counts of one pool; how a `SnapshotStore` weighs its opponents is the store's own
(`sc2pool.tasks.opponents.results`). Rules: an episode that a fault cut short has no result, and one
whose sides are both the learner's has no opponent: neither counts. A pool lists `MOST_OPPONENTS` at
most, and what it has counted of those that it has not met for longest is one entry, `OTHERS`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

MOST_OPPONENTS: Final = 50
"""Opponents listed by name; as many as a `SnapshotStore` keeps by default."""
OTHERS: Final = "others"
"""Name of the opponents without an entry of their own."""


@dataclass(frozen=True)
class MatchResults:
    """Matches against one opponent that ended, as the learner sees them.

    Attributes:
        win: how many it won.
        loss: how many it lost.
        tie: how many ended in a tie.
        undecided: how many the task has ended while the game continued.
    """

    win: int = 0
    loss: int = 0
    tie: int = 0
    undecided: int = 0

    @property
    def played(self) -> int:
        """All of them."""
        return self.win + self.loss + self.tie + self.undecided

    @property
    def win_rate(self) -> float:
        """The share that was won; 0 before the first."""
        return self.win / self.played if self.played else 0.0


class MatchCounter:
    """Counts the matches of one pool."""

    def __init__(self) -> None:
        self._by_opponent: OrderedDict[str, Counter[str]] = OrderedDict()
        """The opponent met last is last; `OTHERS` is not in it."""
        self._others: Counter[str] = Counter()

    def count(self, opponent: str, result: str) -> None:
        """Count a match that ended; the result is the name of a field of `MatchResults`."""
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
    """The results of several pools as those of one."""
    whole: dict[str, Counter[str]] = {}
    for part in parts:
        for name, results in part.items():
            whole.setdefault(name, Counter()).update(vars(results))
    return {name: MatchResults(**counts) for name, counts in whole.items()}
