"""Installations of the stand-in with a changed executable."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path


def changed(standin: Path, folder: Path, change: Callable[[str], str]) -> Path:
    """A copy of an installation.

    Args:
        standin: the installation.
        folder: where the copy is made.
        change: makes the copy's executable, a script, from the stand-in's.
    """
    shutil.copytree(standin, folder)
    (executable,) = folder.glob("Versions/Base*/SC2_x64")
    before = executable.read_text()
    after = change(before)
    assert after != before
    executable.write_text(after)
    return folder
