"""What a pool counts of itself, as plain data; of durations it keeps the newest thousand."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sc2pool.errors import Fault
from sc2pool.tasks.player import GameFacts

_RECENT = 1000


@dataclass
class Stats:
    """Counters since the pool was made."""

    launches: int = 0
    resets: int = 0
    env_steps: int = 0
    episodes: int = 0
    recycles: Counter[str] = field(default_factory=Counter)
    """Replaced instances by cause: the kind of fault, or the soft limit."""
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """The newest launches and recycles."""
    reset_s: dict[str, deque[float]] = field(default_factory=dict)
    """The newest reset times by rung of the ladder."""
    recovery_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """From a fault to the first observation of the instance that took over."""
    facts: GameFacts | None = None
    """Of the newest game."""

    def count_launch(self, facts: GameFacts | None) -> None:
        self.launches += 1
        self.facts = facts
        self._event("launch", pid=facts.pid if facts else None)

    def count_reset(self, rung: str, seconds: float) -> None:
        self.resets += 1
        self.reset_s.setdefault(rung, deque(maxlen=_RECENT)).append(seconds)

    def count_fault(self, seat: str, instance: int, fault: Fault) -> None:
        self.recycles[str(fault.kind)] += 1
        self._event("fault", seat=seat, instance=instance, **asdict(fault))

    def count_recycle(self, seat: str, instance: int, cause: str) -> None:
        self.recycles[f"soft-{cause}"] += 1
        self._event("recycle", seat=seat, instance=instance, cause=cause)

    def _event(self, event: str, **about: Any) -> None:
        self.events.append({"event": event, "at_s": time.monotonic(), **about})

    def as_dict(self) -> dict[str, Any]:
        """A copy in plain types; see `Pool.stats`."""
        return {
            "game_version": self.facts.version if self.facts else None,
            "base_build": self.facts.base_build if self.facts else None,
            "launches": self.launches,
            "resets": self.resets,
            "env_steps": self.env_steps,
            "episodes": self.episodes,
            "recycles": dict(self.recycles),
            "reset_s": {rung: summary(seconds) for rung, seconds in self.reset_s.items()},
            "recovery_s": summary(self.recovery_s),
            "events": list(self.events),
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
