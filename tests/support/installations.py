"""Installations of the stand-in with a changed executable."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path


def changed(standin: Path, folder: Path, change: Callable[[str], str]) -> Path:
    """Copy an installation, and change the executable of the copy.

    Args:
        standin: The installation to copy.
        folder: The folder of the copy.
        change: A function that gets the script of the stand-in, and returns the script of the copy.
    """
    shutil.copytree(standin, folder)
    (executable,) = folder.glob("Versions/Base*/SC2_x64")
    before = executable.read_text()
    after = change(before)
    assert after != before
    executable.write_text(after)
    return folder
