"""Slow or hung? How long one step is waited for.

    sent ──── ½ limit ──── limit ──────────────── 3 × limit
              CPU time     has it grown?  yes ┄┄► hung after all
              is noted                    no  ┄┄► hung

Rule: a game that is answering pays for none of this; its CPU time is first looked at when half
of the limit has gone by without an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sc2pool.deadline import Deadline

SLOW_FACTOR: Final = 3.0
"""A slow game gets this many times the limit."""
_PROGRESS: Final = 0.01
"""CPU seconds per second that count as work; an idle process's threads use less."""


class Patience:
    """The wait for one step: a first deadline, and what follows when it passes."""

    def __init__(self, limit_s: float, cpu_seconds: Callable[[], float]) -> None:
        self._limit_s = limit_s
        self._cpu_seconds = cpu_seconds
        self._noted_cpu_s: float | None = None
        self._extended = False
        self.first = Deadline.after(limit_s / 2)

    def extend(self) -> Deadline | None:
        """The next deadline, or None when the game has to be taken for hung."""
        half_s = self._limit_s / 2
        if self._noted_cpu_s is None:
            self._noted_cpu_s = self._cpu_seconds()
            return Deadline.after(half_s)
        if self._extended or self._cpu_seconds() - self._noted_cpu_s < _PROGRESS * half_s:
            return None
        self._extended = True
        return Deadline.after((SLOW_FACTOR - 1) * self._limit_s)
