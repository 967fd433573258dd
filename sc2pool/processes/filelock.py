"""Exclusive file locks that end with the last process that holds them, however it dies.

On POSIX, `flock` is used: its lock belongs to the open file, so a child that inherits the
descriptor holds the lock too. On Windows, `msvcrt.locking` is used: its lock belongs to one
process.

Rules: the file serves only as a lock, and the holder of the lock may delete the file. A symbolic
link in place of the file is refused. Through such a link in a shared folder, another user could
make this program create a file anywhere.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS

if WINDOWS:
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(path: Path, mode: int = 0o600) -> int | None:
    """Lock `path`; return the descriptor that holds the lock, or None if another process holds it.

    A missing file is created with the permissions `mode`, reduced by the umask. Raises OSError if
    the file cannot be opened (ELOOP means a symbolic link), or if its file system has no locks.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), mode)
        try:
            _take(fd)
        except OSError as error:
            os.close(fd)
            if WINDOWS or error.errno == errno.EWOULDBLOCK:
                return None
            path.unlink(missing_ok=True)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.lstat()):
                return fd
        # The previous holder has deleted the file since we opened it, so our lock is worthless.
        # Another process could create and lock a new file of this name.
        os.close(fd)


def reserve(path: Path, held_by: str) -> int | None:
    """Lock a file in a folder into which only one program at a time may write.

    Args:
        path: the file; several users may share its folder.
        held_by: a description of the holder, for the error if another process holds the lock.

    Returns:
        The descriptor that holds the lock, or None if the file system has no locks.

    Raises:
        ConfigError: another process holds the lock, or `path` is another user's file, or a link.
    """
    try:
        held = try_lock(path, 0o666)
    except PermissionError as error:
        raise ConfigError(
            f"{path} may not be opened ({error.strerror}): it is another user's, who has not "
            "ended or was killed"
        ) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(f"{path} is a link, so another user may have put it there") from error
        return None
    if held is None:
        raise ConfigError(f"{path.parent}: {held_by}, and has not ended")
    return held


def unlock_and_remove(fd: int, path: Path) -> None:
    """Release the lock of `try_lock` and delete its file."""
    # On systems other than Windows, delete the file while the lock keeps other processes out.
    # Windows deletes only a closed file; if another process has the file open, the file stays.
    if WINDOWS:
        os.close(fd)
    with suppress(OSError):
        path.unlink()
    if not WINDOWS:
        os.close(fd)


def is_own(path: Path) -> bool:
    """True if this user owns the file or folder; raises OSError if it does not exist."""
    if WINDOWS:
        return True  # on Windows, each user has a separate temporary folder
    return path.stat().st_uid == os.getuid()
