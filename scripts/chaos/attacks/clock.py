"""Sets the wall clock of all processes of the run forwards or backwards, by up to a year.

The processes preload a library that adds the number in a file to the wall clock. The monotonic
clock does not change. (With Debian's libfaketime `time.sleep` fails in Python 3.11.)
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
"""The environment variable with the path of the file that sets the clock."""
LONGEST_S = 365 * 86_400.0


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process whose clock can be set; {} without cc and glibc."""
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
    """Let the clock jump by a random time, uniform on a logarithmic scale."""
    seconds = rng.choice([-1, 1]) * int(LONGEST_S ** rng.random())
    arena.beside(soon(rng), _write, Path(os.environ[CLOCK]), seconds)


def _write(file: Path, seconds: int) -> None:
    # The file must not be replaced, because processes have mapped it.
    with file.open("r+b" if file.exists() else "wb") as opened:
        opened.write(struct.pack("l", seconds))


ATTACKS = {"clock": Attack("clock", set_clock, May.NOTHING, needs("clock"))}
