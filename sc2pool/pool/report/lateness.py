"""How late actions came in real time: never only an average, which hides the one long gap.

    Tick of each step ─► Ticks ─► stats()["realtime"]: gap p50, p99, max; periods and loops lost

Rules: of gaps the newest thousand of each env are kept, and the longest of all; the rest are sums
since the pool was made. The trainer's thread notes, any thread may read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sc2pool.game.clock import Tick

_RECENT = 1000


@dataclass
class Measures:
    """Of one env."""

    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    steps: int = 0
    longest_s: float = 0.0
    misses: int = 0
    lost_periods: int = 0
    skipped_loops: int = 0

    def note(self, tick: Tick) -> None:
        self.gaps_s.append(tick.gap_s)
        self.steps += 1
        self.longest_s = max(self.longest_s, tick.gap_s)
        self.misses += tick.lost_periods > 0
        self.lost_periods += tick.lost_periods
        self.skipped_loops += tick.skipped_loops


class Ticks:
    """Of all envs of a pool, and of its spares."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._envs: dict[int, Measures] = {}
        self._held = 0
        self._held_loops = 0
        self._problem = ""

    def note(self, env: int, tick: Tick) -> None:
        """A step of this env was so late."""
        with self._lock:
            self._envs.setdefault(env, Measures()).note(tick)

    def note_hold(self, loops: int | None) -> None:
        """A spare that was held went on; so many loops had passed meanwhile."""
        with self._lock:
            self._held += 1
            self._held_loops += loops or 0

    def note_problem(self, problem: str) -> bool:
        """A game could not be held, so there are no spares; whether that is news."""
        with self._lock:
            first = not self._problem
            self._problem = problem
        return first

    def as_dict(self) -> dict[str, Any]:
        """A copy in plain types; see `Pool.stats`."""
        with self._lock:
            return {
                **_figures(self._envs.values()),
                "envs": {f"env {env}": _figures([self._envs[env]]) for env in sorted(self._envs)},
                "spares": {
                    "held": self._held,
                    "loops": self._held_loops,
                    "problem": self._problem,
                },
            }


def _figures(envs: Iterable[Measures]) -> dict[str, Any]:
    measures = list(envs)
    gaps_s = sorted(gap_s for one in measures for gap_s in one.gaps_s)
    told: dict[str, float] = {}
    if gaps_s:
        last = len(gaps_s) - 1
        told = {
            "p50": gaps_s[last // 2],
            "p99": gaps_s[round(last * 0.99)],
            "max": max(one.longest_s for one in measures),
        }
    return {
        "steps": sum(one.steps for one in measures),
        "gap_s": told,
        "misses": sum(one.misses for one in measures),
        "lost_periods": sum(one.lost_periods for one in measures),
        "skipped_loops": sum(one.skipped_loops for one in measures),
    }
