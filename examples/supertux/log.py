"""The game's log on Windows, where the game writes a file instead of standard error.

The game appends to `console.err`, one file for all runs of the game (see SuperTux's main.cpp). When
a run ends, its lines, about 14 MB an hour, are removed from the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_POLL_INTERVAL_S: Final = 0.002
"""Seconds between two reads. Windows does not report new lines, and a tick is 15 ms."""


def windows_log() -> Path:
    """The path of the game's log."""
    return Path(os.environ["APPDATA"]) / "SuperTux" / "supertux2" / "console.err"


class LogFile:
    """Reads the lines that a game appends to a file. Make this object before the game starts.

    A thread calls `on_line` with each complete line. A missing file is created.
    """

    def __init__(self, path: Path, on_line: Callable[[bytes], object]) -> None:
        self._path = path
        self._on_line = on_line
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._old_bytes = path.stat().st_size
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, name="supertux-log", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._old_bytes)
            line = b""
            while True:
                closing = self._closing.is_set()  # check for the end first, so no line is lost
                part = file.readline()
                line += part
                if line.endswith(b"\n"):
                    self._on_line(line)
                    line = b""
                elif not part:
                    if closing:
                        return
                    self._closing.wait(_POLL_INTERVAL_S)
                    file.seek(file.tell())  # some C libraries need this call to read new lines

    def close(self) -> None:
        """Remove the game's lines from the file. Call this after the game's end."""
        self._closing.set()
        self._thread.join()
        with suppress(OSError):
            os.truncate(self._path, self._old_bytes)
