"""Files that appear in one piece: a reader finds a whole one, whenever the program ends.

Rules: a file is written under a name that cannot be guessed and that no file had before. Under a
known name, in a folder of several users, a link of another user's would lead the writer to a file
of that user's choice. A program that is killed leaves its unfinished file behind; a command that
alone writes into a folder removes such files when it begins. Nothing here is made by `tempfile`,
which on Windows tries for ever in a folder that may not be written to: there it takes the refusal
for a name that is in use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNFINISHED = "unfinished-"
"""How the names of unfinished files and folders begin."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path`, to be written in the block, which then takes the place of `path`.

    If the block fails it is removed, and `path` stays as it was. Windows replaces no file that is
    open: close it in the block.

    Raises:
        OSError: the file cannot be made, or not take the place of `path`.
    """
    unfinished = new_file(path)
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def new_file(path: Path) -> Path:
    """Make an empty file in the folder of `path`, with the same suffix; the umask gives its mode.

    Raises:
        OSError: the folder may not be written to, or is missing, or is full.
    """
    unfinished = path.with_name(f"{_UNFINISHED}{os.urandom(8).hex()}-{path.name}")
    unfinished.open("xb").close()  # "x" follows no link
    return unfinished


def new_folder(directory: Path, prefix: str = _UNFINISHED) -> Path:
    """Make a folder with a name that no other has; it is this user's alone.

    Raises:
        OSError: the directory may not be written to, or is missing, or is full.
    """
    folder = directory / f"{prefix}{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    return folder


def remove_unfinished(folder: Path) -> None:
    """Remove what killed programs have left unfinished in this folder; no other may write there."""
    for left in folder.glob(f"{_UNFINISHED}{'[0-9a-f]' * 16}*"):
        with suppress(OSError):  # of another user
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
