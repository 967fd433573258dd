"""Atomic replacement of a file: another process sees either the old file or the whole new one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a temporary file in the folder of `path`, and move this file to `path`."""
    # On Windows, `tempfile` would try for ever in a folder without permission to write.
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
