"""Exclusive locks on files that end with the last process holding them, however it dies.

POSIX has `flock`: the lock belongs to the open file, so a child that inherits the descriptor
holds it too. Windows has `msvcrt.locking`: the lock belongs to the process alone.

Rule: the file is only a thing to lock; its content means nothing, and it may be deleted by the
holder of the lock.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(path: Path) -> int | None:
    """Locks `path`, creating it where needed.

    Returns:
        The descriptor that holds the lock, or None if someone else holds it.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(fd)
        except OSError:
            os.close(fd)
            return None
        if _is_still_at(path, fd):
            return fd
        # Its last holder deleted the file between our open and our lock: what we hold is not
        # what the next one would find.
        os.close(fd)


def unlock_and_remove(fd: int, path: Path) -> None:
    """Gives up the lock of `try_lock` and deletes its file."""
    # Deleting comes first, while the lock still keeps others out; where an open file cannot be
    # deleted, it stays, which does no harm.
    with suppress(OSError):
        path.unlink()
    os.close(fd)


def _is_still_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
