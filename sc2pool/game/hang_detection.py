"""Slow or hung? When a reply that does not come means that the game has to be replaced.

    sent ──── ½ limit ──── limit ──────────────── 3 × limit
              CPU time     has it grown?  yes ┄┄► hung after all
              is noted                    no  ┄┄► hung

The worker applies this to each burst (`HangDetector`). The supervisor's deadline of a step, behind
it, and the watchdog's samples use the same figures.

Rule: a game that answers in time pays for none of this; its CPU time is first read when half of
the limit has passed without an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sc2pool.deadline import Deadline

SLOW_FACTOR: Final = 3.0
"""A game that is slow but works may take this many times the limit of a step."""
IDLE_CPU_SHARE: Final = 0.01
"""CPU seconds per second below which a process does no work; its idle threads use less."""
STALL_S: Final = 1.0
"""A timer this late means that this process itself was stopped (Ctrl-Z, a closed lid) or busy."""


def unless_stalled(deadline: Deadline, grace_s: float) -> Deadline:
    """The same deadline, or a later one if it passed while this process did not run.

    What it was waiting for may have been stopped as well, or was asked only now.
    """
    if time.monotonic() - deadline.instant_s > STALL_S:
        return Deadline.after(grace_s)
    return deadline


class HangDetector:
    """The wait for one answer after another: a first deadline, and what follows when it passes.

    Args:
        cpu_seconds: reads the CPU time that the game has used.
    """

    def __init__(self, cpu_seconds: Callable[[], float]) -> None:
        self._cpu_seconds = cpu_seconds
        self._limit_s = 0.0
        self._noted_cpu_s: float | None = None
        self._extended = False

    def begin(self, limit_s: float) -> Deadline:
        """The first deadline for the next answer."""
        self._limit_s = limit_s
        self._noted_cpu_s = None
        self._extended = False
        return Deadline.after(limit_s / 2)

    def extend(self) -> Deadline | None:
        """The next deadline, or None if the game is hung."""
        half_s = self._limit_s / 2
        if self._noted_cpu_s is None:
            self._noted_cpu_s = self._cpu_seconds()
            return Deadline.after(half_s)
        if self._extended:
            return None
        if self._cpu_seconds() - self._noted_cpu_s < IDLE_CPU_SHARE * half_s:
            return None
        self._extended = True
        return Deadline.after((SLOW_FACTOR - 1) * self._limit_s)
