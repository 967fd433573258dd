"""Writes files atomically: a reader finds a whole file, even if the writing program is killed.

Rules: a file is written under a new name that cannot be guessed. If another user could guess the
name, a link of that name could make this program overwrite another file. A killed program
leaves its unfinished file behind. A command that is the only writer of a folder removes such files
when it begins. `tempfile` is not used: if a folder on Windows may not be written to, `tempfile`
retries for ever, because it takes every refusal for a name in use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNFINISHED = "unfinished-"
"""Prefix of the names of unfinished files and folders."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file beside `path`; after the block, it replaces `path`.

    If the block fails, the new file is removed and `path` is unchanged. Close the new file within
    the block, because Windows does not replace open files.

    Raises:
        OSError: the new file cannot be made, or cannot replace `path`.
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
    """Make an empty file beside `path`, with the suffix of `path` and the umask's permissions.

    Raises:
        OSError: the folder is missing or may not be written to, or the disk is full.
    """
    unfinished = path.with_name(f"{_UNFINISHED}{os.urandom(8).hex()}-{path.name}")
    unfinished.open("xb").close()  # mode "x" does not follow links
    return unfinished


def new_folder(directory: Path, prefix: str = _UNFINISHED) -> Path:
    """Make a folder with a new name, to which only this user has access.

    Raises:
        OSError: the directory is missing or may not be written to, or the disk is full.
    """
    folder = directory / f"{prefix}{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    return folder


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished files of killed programs; no other program may write to the folder."""
    for left in folder.glob(f"{_UNFINISHED}{'[0-9a-f]' * 16}*"):
        with suppress(OSError):  # the file may belong to another user
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
