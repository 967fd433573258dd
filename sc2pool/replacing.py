"""Files that appear in one piece: a reader finds a whole one, whenever the program ends.

Rule: nothing here is made by `tempfile`, which on Windows tries for ever in a folder that may not
be written to: there it takes the refusal for a name that is in use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path`, to be written in the block, which then takes the place of `path`.

    If the block fails it is removed, and `path` stays as it was. Windows replaces no file that is
    open: close it in the block.
    """
    unfinished = path.with_name("unfinished-" + path.name)
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def new_folder(directory: Path, prefix: str) -> Path:
    """Make a folder with a name that no other has; it is this user's alone.

    Raises:
        OSError: the directory may not be written to, or is missing, or is full.
    """
    folder = directory / f"{prefix}{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    return folder
