"""What a user can paste into a shell: a path as one word, and the programs of this environment."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

from sc2pool.platform import WINDOWS


def quoted(path: Path) -> str:
    """A path as one word of a command line; Windows' command prompt knows no single quotes."""
    return subprocess.list2cmdline([str(path)]) if WINDOWS else shlex.quote(str(path))


def called(program: str) -> str:
    """How the user's shell calls a program of this Python's environment, such as pip.

    It is the name alone if the PATH has the environment; a clone's `.venv` is rarely on it, and
    the program that the name finds then may be of another environment.
    """
    script = Path(sysconfig.get_path("scripts"), f"{program}.exe" if WINDOWS else program)
    if not script.exists():
        return f"{quoted(_from_here(Path(sys.executable)))} -m {program}"
    found = shutil.which(program)
    if found is not None and script.samefile(found):
        return program
    return quoted(_from_here(script))


def _from_here(file: Path) -> Path:
    """A path below the working directory, as its user would write it; else the absolute one."""
    with suppress(OSError, ValueError):
        below = file.relative_to(Path.cwd())
        if len(below.parts) > 1:  # a shell looks up a name alone on the PATH
            return below
    return file
