"""Exclusive locks on files that end with the last process that holds them, however it dies.

POSIX has `flock`: the lock belongs to the open file, so a child that inherits the descriptor
holds it too. Windows has `msvcrt.locking`: the lock belongs to the process alone.

Rules: the file exists only to be locked; its content means nothing, and the holder of the lock may
delete it. A link in its place is refused: in a folder of several users it would create a file
wherever its maker wants one.
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
    """Locks `path`, and creates it if it is missing.

    Args:
        path: the file.
        mode: its permissions if it is created, of which the umask takes some away.

    Returns:
        The descriptor that holds the lock, or None if another process holds it.

    Raises:
        OSError: the file cannot be opened; ELOOP if there is a link in its place. Or its file
            system has no locks, as some on POSIX.
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
        if _is_still_at(path, fd):
            return fd
        # Its last holder deleted the file between our open and our lock: the next process would
        # find another file.
        os.close(fd)


def reserve(path: Path, held_by: str) -> int | None:
    """Lock a file in a folder into which one program at a time may write.

    Args:
        path: the file; several users may share the folder.
        held_by: in words, for an error: who has the lock, if another process has it.

    Returns:
        The descriptor that holds the lock; None if the file system has no locks.

    Raises:
        ConfigError: another process holds the lock, or another user has put something in its place.
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
    """Gives up the lock of `try_lock` and deletes its file."""
    # Delete first, while the lock still keeps others out. Windows deletes no open file: there it is
    # closed first, and it stays if another process has opened it by then.
    if WINDOWS:
        os.close(fd)
    with suppress(OSError):
        path.unlink()
    if not WINDOWS:
        os.close(fd)


def is_own(path: Path) -> bool:
    """True if this user owns the file or folder.

    Raises:
        OSError: there is none.
    """
    if WINDOWS:
        return True  # folders for temporary files are each user's own there
    return path.stat().st_uid == os.getuid()


def _is_still_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
