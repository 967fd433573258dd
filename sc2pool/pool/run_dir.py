"""The folder of one pool's run: the temp files of its workers and games.

It is private to the user (0700) and goes with the pool. A lock that the trainer holds for life
tells a living run from what a killed trainer left behind; the next pool sweeps the latter.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from sc2pool.errors import ConfigError
from sc2pool.game.filelock import try_lock

_LOCK = "lock"
_PREFIX = "sc2pool-run-"


class RunDir:
    """The folder of a living run."""

    def __init__(self) -> None:
        sweep(Path(tempfile.gettempdir()))
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mkdtemp makes it 0700
        except OSError as error:
            raise ConfigError(
                f"cannot make a folder for temporary files in {tempfile.gettempdir()}: "
                f"{error.strerror}"
            ) from error
        self._lock_fd = try_lock(self.path / _LOCK)

    def instance_dir(self, number: int) -> Path:
        """A folder for one instance, which makes it its temp folder."""
        path = self.path / str(number)
        path.mkdir(mode=0o700)
        return path

    def close(self) -> None:
        """Delete all of it; may be called again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def sweep(temp: Path) -> None:
    """Delete the folders of runs whose trainer is gone, ours only."""
    for path in temp.glob(f"{_PREFIX}*"):
        # A folder without a lock file is a run that just begins.
        if not (path / _LOCK).exists() or path.stat().st_uid != os.getuid():
            continue
        lock_fd = try_lock(path / _LOCK)
        if lock_fd is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock_fd)
