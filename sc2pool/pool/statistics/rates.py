"""How fast counters grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class Rates:
    """Rates of some counters over a window of time. Not thread-safe.

    Args:
        window_s: how much of the past a rate covers. With notes that are further apart than this,
            it covers the time between the newest two.
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
