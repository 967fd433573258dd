"""What a pool counts of itself, as plain data; of durations it keeps the newest thousand."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sc2pool.errors import Fault
from sc2pool.tasks.player import GameFacts

_RECENT = 1000


@dataclass
class Stats:
    """Counters since the pool was made."""

    launches: int = 0
    env_steps: int = 0
    episodes: int = 0
    recycles: Counter[str] = field(default_factory=Counter)
    """Replaced instances by the kind of fault."""
    reset_s: dict[str, deque[float]] = field(default_factory=dict)
    """The newest reset times by rung of the ladder."""
    recovery_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """From a fault to the first observation of the instance that took over."""
    facts: GameFacts | None = None
    """Of the newest game."""

    def count_reset(self, rung: str, seconds: float) -> None:
        self.reset_s.setdefault(rung, deque(maxlen=_RECENT)).append(seconds)

    def count_fault(self, fault: Fault) -> None:
        self.recycles[str(fault.kind)] += 1

    def as_dict(self) -> dict[str, Any]:
        """A copy in plain types; see `Pool.stats`."""
        return {
            "game_version": self.facts.version if self.facts else None,
            "base_build": self.facts.base_build if self.facts else None,
            "launches": self.launches,
            "env_steps": self.env_steps,
            "episodes": self.episodes,
            "recycles": dict(self.recycles),
            "reset_s": {rung: summary(seconds) for rung, seconds in self.reset_s.items()},
            "recovery_s": summary(self.recovery_s),
        }


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Count, median, 95th percentile and maximum of some durations."""
    if not seconds:
        return {"count": 0}
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {
        "count": len(ordered),
        "p50": ordered[last // 2],
        "p95": ordered[round(last * 0.95)],
        "max": ordered[last],
    }
