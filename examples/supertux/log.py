"""The game's log where it is a file: its Windows version writes no standard error.

It appends to `console.err`, which all its runs share (SuperTux's main.cpp). Rule: what the game has
written is taken out of the file again, about 14 MB an hour.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_POLL_INTERVAL_S: Final = 0.002
"""Windows wakes no reader of a file; a tick of the game is 15 ms."""


def windows_log() -> Path:
    """Where the game writes it."""
    return Path(os.environ["APPDATA"]) / "SuperTux" / "supertux2" / "console.err"


class LogFile:
    """What a game appends to a file; to be made before the game is started.

    Args:
        path: the file; it is created if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._old_bytes = path.stat().st_size

    def lines(self, has_ended: Callable[[], bool]) -> Iterator[bytes]:
        """Each new line once it is complete, until the game has ended and all is read."""
        with self._path.open("rb") as file:
            file.seek(self._old_bytes)
            line = b""
            while True:
                ended = has_ended()  # asked before the read, so that its last words are read, too
                part = file.readline()
                line += part
                if line.endswith(b"\n"):
                    yield line
                    line = b""
                elif not part:
                    if ended:
                        return
                    time.sleep(_POLL_INTERVAL_S)
                    file.seek(file.tell())  # a C library may read no further than a first end

    def close(self) -> None:
        """Leave the file as it was before the game."""
        with suppress(OSError):
            os.truncate(self._path, self._old_bytes)
