"""The history of a pool's figures, for the curves of a page that is opened later.

    watchdog's samples ─► note ─► at most `POINTS` samples ─► the run's `curve.json`

Rule: the memory is bounded. When the history is full, every second sample is dropped and the
interval between samples doubles. So it always covers the whole run at an even resolution. `Rates`
computes the growth of counters from the same samples of the watchdog.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

POINTS = 400
"""How many samples are kept: a chart on a page cannot show more."""
NAMES_KEPT = 32
"""How many curves are kept. Later names get no curve, which bounds the memory."""


class History:
    """Samples of some figures at even intervals. Not thread-safe.

    Args:
        interval_s: the first interval between two samples.

    Attributes:
        changes: how often the samples have changed.
    """

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval_s = interval_s
        self._next_s = -math.inf
        self._samples: list[tuple[float, int, dict[str, float]]] = []
        self._names: dict[str, None] = {}  # a set that keeps its order
        self.changes = 0

    def note(self, at_s: float, steps: int, figures: Mapping[str, float | None]) -> None:
        """Keep a sample if the interval has passed.

        Args:
            at_s: seconds since the pool was made.
            steps: the pool's number of steps.
            figures: values by name. None and values that are not finite are left out.
        """
        if at_s < self._next_s:
            return
        self._next_s = at_s + self._interval_s
        known: dict[str, float] = {}
        for name, value in figures.items():
            if value is None or not math.isfinite(value):
                continue
            if len(self._names) < NAMES_KEPT:
                self._names[name] = None
            if name in self._names:
                known[name] = float(value)
        self._samples.append((at_s, steps, known))
        self.changes += 1
        if len(self._samples) >= POINTS:
            del self._samples[1::2]
            self._interval_s *= 2

    def as_dict(self) -> dict[str, Any]:
        """All samples as plain values: `at_s`, `steps`, and `figures`, a list for each name.

        A figure that a sample lacks is None.
        """
        return {
            "at_s": [round(at_s, 1) for at_s, _, _ in self._samples],
            "steps": [steps for _, steps, _ in self._samples],
            "figures": {
                name: [_short(figures.get(name)) for _, _, figures in self._samples]
                for name in self._names
            },
        }


def _short(value: float | None) -> float | None:
    """The value with five significant digits, enough for a chart."""
    return None if value is None else float(f"{value:.5g}")


class Rates:
    """Rates of some counters over a window of time. Not thread-safe.

    Args:
        window_s: the time that a rate covers. If notes are further apart, a rate covers the time
            between the newest two.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._notes: deque[tuple[float, Mapping[str, float]]] = deque()

    def note(self, now_s: float, counters: Mapping[str, float]) -> None:
        """Note the counters' values at this monotonic time."""
        self._notes.append((now_s, counters))
        while len(self._notes) > 2 and self._notes[0][0] < now_s - self._window_s:
            self._notes.popleft()

    def per_s(self, name: str) -> float | None:
        """A counter's growth per second; None if fewer than two notes have it."""
        now_s, newest = self._notes[-1]
        for then_s, counters in self._notes:
            if name in counters and name in newest and now_s > then_s:
                return (newest[name] - counters[name]) / (now_s - then_s)
        return None
