"""Durations and their percentiles, from the newest thousand, and the longest of all.

Only this module computes percentiles of durations. They equal those of `numpy.percentile`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

_RECENT = 1000


@dataclass(frozen=True)
class Durations:
    """Figures of some durations; all but `count` in seconds.

    In a pool's statistics the percentiles cover the newest thousand durations, while `count` and
    `max` cover all.

    Attributes:
        count: the number of durations, at least one.
        p50: the median.
        p95: the 95th percentile.
        p99: the 99th percentile.
        max: the longest.
    """

    count: int
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, durations_s: Sequence[float]) -> Self:
        """The figures of these durations; at least one is needed."""
        ordered = np.sort(durations_s)
        # `np.percentile` imports a package of 10 MB at its first call. That fails if no descriptor
        # is free.
        places = np.array((0.5, 0.95, 0.99, 1.0)) * (len(ordered) - 1)
        return cls(len(ordered), *np.interp(places, np.arange(len(ordered)), ordered).tolist())


@dataclass
class DurationCounter:
    """Collects durations."""

    count: int = 0
    longest_s: float = 0.0
    newest_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, duration_s: float) -> None:
        """Add a duration; an interrupt between two lines leaves a state that `figures` accepts."""
        self.newest_s.append(duration_s)
        self.longest_s = max(self.longest_s, duration_s)
        self.count += 1


def figures(*counters: DurationCounter) -> Durations | None:
    """The figures of all durations of these counters together; None without any."""
    count = sum(counter.count for counter in counters)
    if not count:
        return None
    newest = Durations.of([one_s for counter in counters for one_s in counter.newest_s])
    longest_s = max(counter.longest_s for counter in counters)
    return Durations(count, newest.p50, newest.p95, newest.p99, longest_s)
