"""Texts that a user can paste into a shell: quoted paths and programs of this environment."""

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
    """A path as one word of a command line, quoted for the system's shell."""
    return subprocess.list2cmdline([str(path)]) if WINDOWS else shlex.quote(str(path))


def called(program: str) -> str:
    """The command that runs a program of this Python's environment, such as pip.

    The command is the program's bare name only if the PATH leads to this environment's program. The
    `.venv` of a clone is rarely on the PATH, so the bare name may run another environment's
    program.
    """
    script = Path(sysconfig.get_path("scripts"), f"{program}.exe" if WINDOWS else program)
    if not script.exists():
        return f"{quoted(_from_here(Path(sys.executable)))} -m {program}"
    found = shutil.which(program)
    if found is not None and script.samefile(found):
        return program
    return quoted(_from_here(script))


def _from_here(file: Path) -> Path:
    """The relative path if the file is below the working directory, else the absolute path."""
    with suppress(OSError, ValueError):
        below = file.relative_to(Path.cwd())
        if len(below.parts) > 1:  # a shell searches the PATH for a bare name
            return below
    return file
