"""The wall clock is set, for all processes of the run: forwards and backwards, by up to a year.

Debian's libfaketime sets it, by a file that all of them read; the monotonic clock goes on.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon

LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
CLOCK = "FAKETIME_TIMESTAMP_FILE"
"""Names the environment variable with the path of the file that sets the clock."""
LONGEST_S = 365 * 86_400.0
READ_EVERY_S = 1


def environment(file: Path) -> dict[str, str]:
    """Of a process whose clock this file sets, and its children's; {} without the library."""
    if not LIBRARIES:
        return {}
    file.write_text("+0\n")
    return {
        "LD_PRELOAD": str(LIBRARIES[0]),
        CLOCK: str(file),
        "FAKETIME_CACHE_DURATION": str(READ_EVERY_S),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def set_clock(arena: Arena, rng: Random) -> None:
    """Small and large jumps are as frequent."""
    seconds = rng.choice([-1, 1]) * LONGEST_S ** rng.random()
    arena.beside(_set_clock, soon(rng), seconds)


def _set_clock(delay_s: float, seconds: float) -> None:
    time.sleep(delay_s)
    file = Path(os.environ[CLOCK])
    whole = file.with_suffix(".new")
    whole.write_text(f"{seconds:+.3f}\n")
    whole.rename(file)


ATTACKS = {"clock": Attack("clock", set_clock, May.NOTHING, needs("clock"))}
