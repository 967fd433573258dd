"""A file that appears in one piece: another process finds all of it or none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write the file beside its place, and put it there."""
    # Not by `tempfile`: on Windows it tries for ever in a folder that may not be written to.
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
        unfinished.chmod(mode)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
