"""What a step costs on maps that name a price: CPU time burnt, time slept.

It imitates a game that is busy, on this core or on another one, and changes nothing in the game.

Rules it keeps: burning is counted in CPU time of the thread, so a game that is kept waiting for a
core still burns all of it; sleeping burns nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

MAX_MS = 1000.0
"""Nothing costs more: while it is paid the process hears no signal."""
_SPIN = range(50)
"""About a microsecond between two looks at the clock, which is time of the kernel's."""


@dataclass(frozen=True)
class StepCost:
    """The price of each step."""

    burn_ms: float
    sleep_ms: float

    def pay(self) -> None:
        """Burn, then sleep."""
        if self.burn_ms > 0.0:
            burn(self.burn_ms / 1000.0)
        if self.sleep_ms > 0.0:
            time.sleep(self.sleep_ms / 1000.0)


def burn(cpu_s: float) -> None:
    """Keep a core busy for so many seconds of CPU time."""
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        for _ in _SPIN:
            pass
