"""Facts about a build of the game: why games end, and the findings of `sc2pool doctor`.

Rules: `diagnose` and `known_faults` are pure. The game's log is searched first, because it is the
most exact source. A build's known faults count only if they fit the game's end. The patterns are
texts that games were seen to print. So `diagnose` may give no advice, but should not give wrong
advice.

`sc2pool doctor --full` measures ("settles") facts that the game's documentation leaves open. The
facts are stored for later pools on the same build:

    Doctor ── settle ──► cache/settled/Base75689-….json ──► settled_on ── a pool.

The file's name contains the build and a hash that identifies the executable, so an update of the
game makes the facts unknown again. A small executable counts as a start script. A start script's
content is hashed, because a script with other options starts another game. For a large executable,
its path, size and modification time are hashed.

Rules: `settled_on` never raises, and trusts only a regular file that belongs to this user and is
not writable by others.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sc2pool.errors import ConfigError
from sc2pool.game.program.installation import Installation, cache_folder
from sc2pool.platform import WINDOWS
from sc2pool.replacing import replacing

_REPAIR: Final = (
    "unpack Blizzard's package again, into an empty folder, or let Battle.net scan and repair it"
)
_EMULATED: Final = (
    "this is an x86-64 game under emulation (Rosetta or QEMU on an ARM processor, such as Apple "
    "Silicon), under which StarCraft II crashes, also in Docker: use an x86-64 machine, or play "
    "the stand-in"
)

_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    # Emulators come first: in an emulator, the game's own messages are only consequences.
    (r"rosetta error:|qemu: uncaught target signal|qemu-x86_64(-static)?: ", _EMULATED),
    (
        r"version [`']?GLIBC_[\d.]+'? not found",
        "the system's C library (glibc) is older than this game needs: use a newer system, or a "
        "container of one",
    ),
    (
        r"version [`']?(GLIBCXX|CXXABI)_[\d.]+'? not found",
        "the system's C++ library is older than this game needs: set LD_LIBRARY_PATH to the "
        "installation's folder Libs, or use a newer system",
    ),
    (
        r"error while loading shared libraries|cannot open shared object file",
        "a library that the game needs is missing: ldd on its executable names it; install the "
        "package that holds it, or set LD_LIBRARY_PATH to the installation's folder Libs",
    ),
    (
        r"[Ee]xec format error|cannot execute binary file|[Bb]ad CPU type in executable",
        "the executable is for another processor or system: install the package for this one",
    ),
    (
        r"e_errorIdMemory",
        "the game found no memory: play fewer games (n, spares), end other programs, or raise "
        "the container's limit; ulimit -v must be unlimited",
    ),
    (
        r"e_fileCorrupt|e_errorIdStreaming|NGDP:E_",
        f"the installation's files are damaged or incomplete: {_REPAIR}",
    ),
    (
        r"Failed to create the socket|cannot bind to \S+:|Address already in use",
        "another program uses the port that the game was given: end it, or games that an earlier "
        "run left behind",
    ),
    (
        r"A game has not been started yet",
        "the game could not read the map and reports it only now: unpack the map's archive again, "
        "with the password that stands for Blizzard's licence; a wrong one leaves unreadable files",
    ),
    (
        r"temporary map '[^']*' has invalid data",
        "the game's temporary map files are in use or used up, as on Windows after about a "
        "hundred games: a new process helps; put the map into the installation's folder Maps",
    ),
)
"""Texts that games print, and advice for each text; the first text that occurs counts."""

_SEGMENTATION_FAULT: Final = (-11, 139, 0xC0000005)
"""The exit codes of a segmentation fault: from `subprocess`, from a shell, and on Windows."""


class _KnownBuild(NamedTuple):
    """A fault of all builds from `first` to `last`."""

    first: int
    last: int
    end: str
    """How the fault may end a game: "crash" or "hang"; empty if it ends no game."""
    fault: str


_BUILDS: Final = (
    _KnownBuild(55958, 55958, "crash", "3.16.1 crashes when it quits"),
    _KnownBuild(56787, 56787, "crash", "3.17 crashes on the map CollectMineralShards"),
    _KnownBuild(59587, 59587, "hang", "4.0 freezes in Zerg mirrors with raw orders to larvae"),
    _KnownBuild(
        59587, 67188, "hang", "4.0.2 to 4.5 lose the API's connection in long waits (fixed in 4.6)"
    ),
    _KnownBuild(59587, 60321, "hang", "4.0.2 to 4.1.2 hang in some replays"),
    _KnownBuild(
        74071, 74741, "hang", "4.9 to 4.9.2 cannot play games of two clients (fixed in 4.9.3)"
    ),
    _KnownBuild(
        75689,
        75689,
        "",
        "4.10 reports a wrong display type of some units on high ground (fixed in 5.0.4)",
    ),
)
"""The builds with faults that several sources have reported independently."""


def diagnose(log: str, exit_code: int | None, base_build: int | None = None) -> str:
    """One line of advice about a failed game; empty if the cause is unknown.

    `log` may end with the API's error texts; for `exit_code` see `GameProcess.exit_code`.
    """
    for pattern, advice in _PATTERNS:
        if re.search(pattern, log):
            return advice
    crashed = exit_code in _SEGMENTATION_FAULT or "Error signal: '11'" in log
    known = _known(base_build, ["crash"] * crashed + ["hang"] * (exit_code is None))
    return f"{known}; play another version" if known else ""


def known_faults(base_build: int) -> str:
    """A text about the known faults of a build; empty if no fault is known."""
    return _known(base_build, ["crash", "hang", ""])


def _known(base_build: int | None, ends: list[str]) -> str:
    faults = [
        build.fault
        for build in _BUILDS
        if base_build is not None and build.first <= base_build <= build.last and build.end in ends
    ]
    return f"known faults of Base{base_build}: {'; '.join(faults)}" if faults else ""


logger = logging.getLogger("sc2pool")

SMALL_BYTES: Final = 1 << 16
"""An executable of fewer bytes than this counts as a start script."""
_MOST_BYTES: Final = 1 << 16
"""The size limit, in bytes, of a file that is read."""
AFTER_STOP: Final = ("freeze", "catch-up", "in part")
"""The values of `Settled.after_stop`."""


@dataclass(frozen=True)
class Settled:
    """Facts about one game that its documentation leaves open; None if a fact was not measured."""

    restart_faithful: bool | None = None
    """True if restart_game restores everything that an episode has used up, such as minerals."""
    restart_with_computer: bool | None = None
    """True if restart_game restores everything in games with a computer or a Random race, too."""
    bursts_in_matches: bool | None = None
    """True if, in a match, bursts of requests give the same observations as single requests."""
    silent_end: bool | None = None
    """True if a request for a future loop stays unanswered when a game in real time ends first."""
    after_stop: str | None = None
    """How a game in real time continues after a signal has stopped it: one of `AFTER_STOP`."""
    measured: str = ""
    """The date of the measurement (ISO 8601); empty if nothing was measured."""


NOTHING_SETTLED: Final = Settled()
"""A `Settled` in which no fact was measured."""


def settled_on(installation: Installation) -> Settled:
    """The stored facts about this installation; `NOTHING_SETTLED` if there is no trusted file."""
    try:
        path = _path(installation)
        content = _own_content(path)
    except FileNotFoundError:
        return NOTHING_SETTLED
    except (ConfigError, OSError) as error:
        logger.debug("no settled facts: %s", error)
        return NOTHING_SETTLED
    try:
        return _parsed(content)
    except (ValueError, RecursionError) as error:
        _say_broken(path, str(error))
        return NOTHING_SETTLED


def settle(installation: Installation, settled: Settled) -> Path:
    """Replace the stored facts; return their file. Raises OSError and `cache_folder`'s errors."""
    path = _path(installation)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.unlink(missing_ok=True)  # an existing file may have a mode other than 0600
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps(asdict(settled), indent=2) + "\n", encoding="utf-8")
    return path


def _path(installation: Installation) -> Path:
    name = f"Base{installation.base_build}-{_identity(installation.executable)}.json"
    return cache_folder() / "settled" / name


def _identity(executable: Path) -> str:
    """A hash that changes if another program is put at the path."""
    found = executable.stat()
    if found.st_size < SMALL_BYTES:
        known = executable.read_bytes()
    else:
        known = f"{found.st_size} {found.st_mtime_ns}".encode()
    return hashlib.sha256(os.fsencode(executable) + b"\0" + known).hexdigest()[:16]


def _own_content(path: Path) -> bytes:
    """Read a private file; OSError if it is missing, unreadable, not regular or not private."""
    # Without O_NONBLOCK, opening a named pipe would wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a regular file")
        writable_by_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not WINDOWS and (found.st_uid != os.getuid() or writable_by_others):
            raise OSError(f"{path} is not private to this user")
        return os.read(descriptor, _MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def _parsed(content: bytes) -> Settled:
    """Read the facts in a file; ValueError or RecursionError if `settle` cannot have written it."""
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    facts: Any = json.loads(content)
    if not isinstance(facts, dict):
        raise ValueError(f"it holds {type(facts).__name__}, expected an object")
    unknown = sorted(facts.keys() - {field.name for field in fields(Settled)})
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(unknown)}")
    for name, value in facts.items():
        if name == "measured":
            fits = isinstance(value, str)
        elif name == "after_stop":
            fits = value is None or value in AFTER_STOP
        else:
            fits = value is None or isinstance(value, bool)
        if not fits:
            raise ValueError(f"{name} is {value!r}")
    return Settled(**facts)


@cache
def _say_broken(path: Path, why: str) -> None:
    logger.warning(
        "The facts that sc2pool doctor settled are ignored: %s is broken (%s); "
        "sc2pool doctor --full writes it again",
        path,
        why,
    )
