"""The cost of a step on maps that have a `step_cost`: time to burn on the CPU, and time to sleep.

Burning CPU time imitates a game that is busy on this core. Sleeping imitates a game that is busy on
another core. The game's replies do not change.

Burning is measured in the thread's CPU time, so a game that has to wait for a core still burns the
whole time. Sleeping uses no CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_MS = 1000.0
"""The greatest cost in ms: a process handles no signals while it sleeps or burns CPU time."""
_SPIN = range(50)
"""About 1 µs of work between two readings of the clock, because each reading is a system call."""


@dataclass(frozen=True)
class StepCost:
    """The cost of each step."""

    burn_ms: float
    sleep_ms: float

    def pay(self) -> None:
        """Burn the CPU time, and then sleep."""
        if self.burn_ms > 0.0:
            burn(self.burn_ms / 1000.0)
        if self.sleep_ms > 0.0:
            time.sleep(self.sleep_ms / 1000.0)


def burn(cpu_s: float, stop: Callable[[], bool] = bool) -> None:
    """Use this many seconds of CPU time, or fewer if `stop()` becomes true."""
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s and not stop():
        for _ in _SPIN:
            pass
