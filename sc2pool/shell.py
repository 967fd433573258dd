"""What a user can paste into a shell: a path as one word, and the programs of this environment."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from sc2pool.platform import WINDOWS


def quoted(path: Path) -> str:
    """A path as one word of a command line; Windows' command prompt knows no single quotes."""
    return subprocess.list2cmdline([str(path)]) if WINDOWS else shlex.quote(str(path))
