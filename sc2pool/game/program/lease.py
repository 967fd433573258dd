"""Leases ports with locks, so that two games of this user never use the same port.

Without a lease, another pool could take a free port before the game listens on it. A lease is a
lock on a file named after the port:

    Port outside the ephemeral range → lock its file → bind it once, as proof → lease.

Rules: the kernel never assigns a port outside its ephemeral range by itself. The game inherits the
lock, so the lease lasts as long as the worker or the game lives. Each user has one folder of lock
files, which no environment variable changes, so all trainers of a user see each other's leases.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.platform import WINDOWS
from sc2pool.processes.filelock import try_lock, unlock_and_remove

HOST: Final = "127.0.0.1"
"""The only address on which games listen."""

_FIRST_PORT: Final = 10_000
"""Leased ports begin here, because services often use lower ports."""
_PORTS_END: Final = 65_536
MOST_GAMES: Final = _PORTS_END - 1
"""The most games on one machine: each game needs a port of its own."""
_EPHEMERAL_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL_ELSEWHERE: Final = (49_152, 65_535)
"""IANA's ephemeral range, which macOS and Windows use."""


def candidate_ports(ephemeral: tuple[int, int]) -> range:
    """The larger range of ports below or above `ephemeral` (first, last); ConfigError if empty."""
    first, last = ephemeral
    below = range(_FIRST_PORT, min(first, _PORTS_END))
    above = range(max(last + 1, _FIRST_PORT), _PORTS_END)
    ports = max(below, above, key=len)
    if not ports:
        raise ConfigError(f"the ephemeral port range {first}-{last} leaves no port for games")
    return ports


def ephemeral_range() -> tuple[int, int]:
    """The first and the last port that the kernel assigns by itself."""
    try:
        first, last = _EPHEMERAL_FILE.read_text().split()
    except (OSError, ValueError):
        return _EPHEMERAL_ELSEWHERE
    return int(first), int(last)


def lease_directory() -> Path:
    """The user's own directory of lock files; created if missing.

    If another user owns a directory at the first place, the next place is used while that directory
    exists. Raises ConfigError if each place belongs to another user, is writable by others, or
    cannot be created.
    """
    if WINDOWS:
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        directory = Path(local) / "sc2pool" / "ports"
        directory.mkdir(parents=True, exist_ok=True)
        return directory
    refused = []
    for directory in _places(os.getuid()):
        why = _why_not(directory)
        if not why:
            return directory
        refused.append(f"{directory} {why}")
    raise ConfigError(f"no directory for the locks of ports: {'; '.join(refused)}")


def _places(uid: int) -> list[Path]:
    """Candidate directories, best first. TMPDIR is not used: it may differ between trainers."""
    if WINDOWS:
        return []  # Windows has no uids and no `pwd`
    import pwd  # noqa: PLC0415

    places = [Path(f"/tmp/sc2pool-ports-{uid}"), Path(f"/run/user/{uid}/sc2pool-ports")]
    with suppress(KeyError):  # the system may not know the user
        places.append(Path(pwd.getpwuid(uid).pw_dir) / ".cache" / "sc2pool-ports")
    return places


def _why_not(directory: Path) -> str:
    """Create the directory if missing. Return why the directory cannot be used, or ''."""
    if WINDOWS:
        return ""
    try:
        with suppress(FileExistsError):  # the check below also rejects a file or a link
            if directory.parent.name == ".cache":
                directory.parent.mkdir(exist_ok=True)
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return (
            f"must be a directory of user {os.getuid()} with mode 0700, but it is "
            f"{stat.filemode(found.st_mode)} of user {found.st_uid}"
        )
    return ""


class PortLease:
    """The right to one port, held until `release`."""

    def __init__(self, port: int, path: Path, fd: int) -> None:
        self.port = port
        self.fd = fd
        """The lock's descriptor, which the game inherits (`pass_fds`)."""
        self._path = path
        self._held = True

    @classmethod
    def acquire(cls, directory: Path | None = None) -> PortLease:
        """Leases a port that is free now, by a lock in `directory`, or else in `lease_directory()`.

        Raises PORT_TAKEN if no port is free, ConfigError if no directory is safe, or OSError.
        """
        directory = directory or lease_directory()
        _delete_unlocked(directory)
        ports = candidate_ports(ephemeral_range())
        # Begin at a random port, so that trainers rarely try the same ports.
        start = int.from_bytes(os.urandom(4)) % len(ports)
        for offset in range(len(ports)):
            port = ports[(start + offset) % len(ports)]
            path = directory / f"{port}.lock"
            fd = try_lock(path)
            if fd is None:
                continue
            with ExitStack() as undo:
                undo.callback(unlock_and_remove, fd, path)
                if _is_free(port):
                    undo.pop_all()
                    return cls(port, path, fd)
        raise GameFault(
            FaultKind.PORT_TAKEN, f"no free port between {ports.start} and {ports.stop - 1}"
        )

    def release(self) -> None:
        """Releases the port; may be called again."""
        if self._held:
            self._held = False
            unlock_and_remove(self.fd, self._path)


def _delete_unlocked(directory: Path) -> None:
    """Delete the lock files of processes that have ended."""
    for path in directory.glob("*.lock"):
        # If another process tries this port meanwhile, it finds the port locked and tries the next.
        fd = try_lock(path)
        if fd is not None:
            unlock_and_remove(fd, path)


def _is_free(port: int) -> bool:
    # Check UDP too: it is undocumented whether the games of a match find each other by datagrams.
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            if WINDOWS:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                return False
    return True
