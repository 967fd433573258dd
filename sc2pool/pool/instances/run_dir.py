"""The folder of one pool's run: the temp files of its workers and games, and their pids.

    <temp>/sc2pool-run-x1y2z3/
        lock            held by the trainer for life
        trainer         its pid and time of creation
        12/             the temp folder of instance 12
            processes   a line for its worker and one for its game: pid, time of creation

`pool/report/live_files.py` says what else lies there. The folder is private to the user (0700) and
is deleted with the pool. The lock is held while the run lives. The next pool sweeps the folders of
killed trainers: it ends those of the noted processes that still live, then deletes the folder.
Rule: a sweep never fails, whatever it finds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from sc2pool.errors import ConfigError
from sc2pool.processes.filelock import is_own, try_lock
from sc2pool.processes.identity import created_at_s, end_orphan, is_alive

_LOCK = "lock"
_PREFIX = "sc2pool-run-"
_TRAINER = "trainer"
_PROCESSES = "processes"
_BEGINS_WITHIN_S = 3600.0
"""A folder without a lock file that is older than this is not of a run that just begins."""


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
        _note(self.path / _TRAINER, os.getpid())

    def instance_dir(self, number: int) -> Path:
        """A folder for one instance, which makes it its temp folder."""
        path = self.path / str(number)
        path.mkdir(mode=0o700)
        return path

    def note_process(self, number: int, pid: int) -> None:
        """Remember a process of this instance, for the sweep after a killed trainer."""
        _note(self.path / str(number) / _PROCESSES, pid)

    def close(self) -> None:
        """Delete all of it; may be called again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def _note(path: Path, pid: int) -> None:
    created_s = created_at_s(pid)
    if created_s is None:
        return
    # A full disk is no reason to stop: workers and games also end by themselves.
    with suppress(OSError), path.open("a") as notes:
        notes.write(f"{pid} {created_s!r}\n")


def trainer_of(run: Path) -> int | None:
    """The pid of the run's trainer; None if it is gone, or this is no folder of a run of ours.

    The lock is not tried for this: holding it for a moment would keep out its owner.
    """
    try:
        if not is_own(run):
            return None
        pid, created_s = (run / _TRAINER).read_text().split()
        return int(pid) if is_alive(int(pid), float(created_s)) else None
    except (OSError, ValueError):
        return None


def living(temp: Path) -> dict[Path, int]:
    """The runs below this folder whose trainers live, with their pids; ours only."""
    pids = {run: trainer_of(run) for run in sorted(temp.glob(f"{_PREFIX}*"))}
    return {run: pid for run, pid in pids.items() if pid is not None}


def sweep(temp: Path) -> None:
    """End the processes and delete the folders of runs whose trainer is gone, ours only."""
    for path in temp.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another trainer's sweep may be faster
            if not is_own(path):
                continue
            if not (path / _LOCK).exists():
                # A trainer was interrupted before it had the lock, or it is about to take it. The
                # wall clock is right here: it is what files have their times from.
                if time.time() - path.stat().st_mtime > _BEGINS_WITHIN_S:
                    shutil.rmtree(path, ignore_errors=True)
                continue
            lock_fd = try_lock(path / _LOCK)
            if lock_fd is not None:
                try:
                    _end_orphans(path)
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock_fd)


def _end_orphans(run: Path) -> None:
    for notes in run.glob(f"*/{_PROCESSES}"):
        for line in notes.read_text().splitlines():
            with suppress(ValueError):  # the trainer was killed while it wrote
                pid, created_s = line.split()
                end_orphan(int(pid), float(created_s))
