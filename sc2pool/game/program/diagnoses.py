"""Known causes of a game's end, recognised by its last words, its exit code or its build.

    diagnose      log, exit code, build  →  one line of advice, empty without a known cause
    known_faults  build                  →  the build's known faults, empty without one

Rules: both functions are pure. The log is searched first, because it is the most exact. A build's
faults count only if they fit the way in which the game ended. Patterns are texts that games were
seen to print. So this file may give no advice, but should not give wrong advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_REPAIR: Final = (
    "unpack Blizzard's package again, into an empty folder, or let Battle.net scan and repair it"
)
_EMULATED: Final = (
    "this is an x86-64 game under emulation (Rosetta or QEMU on an ARM processor, such as Apple "
    "Silicon), under which StarCraft II crashes, also in Docker: use an x86-64 machine, or play "
    "the stand-in"
)

_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    # Emulators first: in an emulator the game's own messages are only consequences.
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
"""Texts that games print, and the advice for each; the first match counts."""

_SEGMENTATION_FAULT: Final = (-11, 139, 0xC0000005)
"""SIGSEGV as `subprocess` and as a shell reports it, and Windows' code for the same."""


def _crashed(log: str, exit_code: int | None) -> bool:
    return exit_code in _SEGMENTATION_FAULT or "Error signal: '11'" in log


def _hangs(log: str, exit_code: int | None) -> bool:  # noqa: ARG001 - as `_crashed`
    return exit_code is None


def _never(log: str, exit_code: int | None) -> bool:  # noqa: ARG001 - as `_crashed`
    return False


class _KnownBuild(NamedTuple):
    """A fault of all builds from `first` to `last`."""

    first: int
    last: int
    fits: Callable[[str, int | None], bool]
    """Whether this fault may lead to a log and an exit code."""
    fault: str


_BUILDS: Final = (
    _KnownBuild(55958, 55958, _crashed, "3.16.1 crashes when it quits"),
    _KnownBuild(56787, 56787, _crashed, "3.17 crashes on the map CollectMineralShards"),
    _KnownBuild(59587, 59587, _hangs, "4.0 freezes in Zerg mirrors with raw orders to larvae"),
    _KnownBuild(
        59587, 67188, _hangs, "4.0.2 to 4.5 lose the API's connection in long waits (fixed in 4.6)"
    ),
    _KnownBuild(59587, 60321, _hangs, "4.0.2 to 4.1.2 hang in some replays"),
    _KnownBuild(
        74071, 74741, _hangs, "4.9 to 4.9.2 cannot play games of two clients (fixed in 4.9.3)"
    ),
    _KnownBuild(
        75689,
        75689,
        _never,
        "4.10 reports a wrong display type of some units on high ground (fixed in 5.0.4)",
    ),
)
"""Builds with faults that several sources have reported independently."""


def diagnose(log: str, exit_code: int | None, base_build: int | None = None) -> str:
    """One line of advice about a failed game; empty if the failure is unknown.

    Args:
        log: the end of the game's output, followed by the API's error texts, if any.
        exit_code: negative for a signal. None if the game still runs.
        base_build: the number of the game's build, if known.
    """
    for pattern, advice in _PATTERNS:
        if re.search(pattern, log):
            return advice
    known = [
        build.fault
        for build in _BUILDS
        if base_build is not None
        and build.first <= base_build <= build.last
        and build.fits(log, exit_code)
    ]
    return f"{_listed(known, base_build)}; play another version" if known else ""


def known_faults(base_build: int) -> str:
    """The known faults of a build, as text; empty without one."""
    known = [build.fault for build in _BUILDS if build.first <= base_build <= build.last]
    return _listed(known, base_build) if known else ""


def _listed(faults: list[str], base_build: int | None) -> str:
    return f"known faults of Base{base_build}: {'; '.join(faults)}"
