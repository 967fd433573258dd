"""Files that appear in one piece: a reader finds a whole one, whenever the program ends."""

from __future__ import annotations

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
