"""What a pool counts of itself, as plain data; of durations it keeps the newest thousand.

Rule: the trainer's thread counts, and any thread may read. What grows is guarded by a lock, which
is taken a few times an episode; `env_steps` and `episodes`, counted at every step, are single
values that need none.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sc2pool.errors import Fault
from sc2pool.pool.report.lateness import Ticks
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
    pauses: int = 0
    """Games that were paused and went on."""
    paused_s: float = 0.0
    """How long they were, in sum."""
    paused_loops: int = 0
    """Game loops that passed in them meanwhile, as far as it is known."""
    ticks: Ticks = field(default_factory=Ticks)
    """How late actions came, in real time."""
    facts: GameFacts | None = None
    """Of the newest game."""
    _by_seat: dict[str, Counter[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_launch(self, facts: GameFacts | None) -> None:
        with self._lock:
            self.launches += 1
            self.facts = facts
            self._event("launch", pid=facts.pid if facts else None)

    def count_reset(self, rung: str, seconds: float) -> None:
        with self._lock:
            self.resets += 1
            self.reset_s.setdefault(rung, deque(maxlen=_RECENT)).append(seconds)

    def count_recovery(self, seconds: float) -> None:
        with self._lock:
            self.recovery_s.append(seconds)

    def count_pause(self, seconds: float, loops: int | None) -> None:
        with self._lock:
            self.pauses += 1
            self.paused_s += seconds
            self.paused_loops += loops or 0

    def count_fault(self, seat: str, instance: int, fault: Fault) -> None:
        with self._lock:
            self._count_cause(seat, str(fault.kind))
            self._event("fault", seat=seat, instance=instance, **asdict(fault))

    def count_recycle(self, seat: str, instance: int, cause: str) -> None:
        with self._lock:
            self._count_cause(seat, f"soft-{cause}")
            self._event("recycle", seat=seat, instance=instance, cause=cause)

    def _count_cause(self, seat: str, cause: str) -> None:
        self.recycles[cause] += 1
        self._by_seat.setdefault(seat, Counter())[cause] += 1

    def _event(self, event: str, **about: Any) -> None:
        self.events.append({"event": event, "at_s": time.monotonic(), **about})

    def as_dict(self) -> dict[str, Any]:
        """A copy in plain types; see `Pool.stats`."""
        with self._lock:
            return self._as_dict()

    def recycles_by_seat(self) -> dict[str, dict[str, int]]:
        """Replaced instances by cause, for each seat that had any."""
        with self._lock:
            return {seat: dict(causes) for seat, causes in self._by_seat.items()}

    def _as_dict(self) -> dict[str, Any]:
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
            "pauses": {
                "count": self.pauses,
                "paused_s": self.paused_s,
                "loops": self.paused_loops,
            },
            "realtime": self.ticks.as_dict(),
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
