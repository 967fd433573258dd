"""The wall clock is set, for all processes of the run: forwards and backwards, by up to a year.

A library that they preload adds to it what a file says; the monotonic clock continues. (Debian's
libfaketime cannot be taken: with it `time.sleep` fails in Python 3.11.)
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon

SOURCE = Path(__file__).with_suffix(".c")
CLOCK = "SC2POOL_CHAOS_CLOCK"
"""Names the environment variable with the path of the file that sets the clock."""
LONGEST_S = 365 * 86_400.0


def environment(folder: Path) -> dict[str, str]:
    """Of a process whose clock can be set, and its children's; {} without cc and glibc."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library, file = folder / "clock.so", folder / "clock"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return {}
    _write(file, 0)
    return {"LD_PRELOAD": str(library), CLOCK: str(file)}


def set_clock(arena: Arena, rng: Random) -> None:
    """Small and large jumps are as frequent."""
    seconds = rng.choice([-1, 1]) * int(LONGEST_S ** rng.random())
    arena.beside(soon(rng), _write, Path(os.environ[CLOCK]), seconds)


def _write(file: Path, seconds: int) -> None:
    with file.open("r+b" if file.exists() else "wb") as opened:  # all have mapped this one
        opened.write(struct.pack("l", seconds))


ATTACKS = {"clock": Attack("clock", set_clock, May.NOTHING, needs("clock"))}
