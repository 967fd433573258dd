"""Stores the findings of `sc2pool doctor --full` about a game for later pools on the same build.

    doctor ── settle ──► cache/settled/Base75689-….json ──► settled_on ── a pool

The file's name contains the build and a hash that identifies the executable, so an update of the
game makes the facts unknown again. A small executable is a start script. Its content is hashed,
because a script with other options starts another game. For a large executable, its path, size and
modification time are hashed.

Rules: `settled_on` never raises. It trusts only a regular file that belongs to this user and is not
writable by others. Unknown facts are None.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from sc2pool.errors import ConfigError
from sc2pool.game.program.installation import Installation, cache_folder
from sc2pool.platform import WINDOWS
from sc2pool.replacing import replacing

logger = logging.getLogger("sc2pool")

SMALL_BYTES: Final = 1 << 16
"""An executable below this size counts as a start script."""
_MOST_BYTES: Final = 1 << 16
"""The largest size of a file that is read."""
AFTER_STOP: Final = ("freeze", "catch-up", "in part")
"""The values of `Settled.after_stop`."""


@dataclass(frozen=True)
class Settled:
    """Facts about one game that its documentation leaves open; None if a fact was not measured."""

    restart_faithful: bool | None = None
    """restart_game restores everything that an episode has used up, such as minerals."""
    restart_with_computer: bool | None = None
    """restart_game does so in games with a computer, and for players of a Random race."""
    bursts_in_matches: bool | None = None
    """In a match, bursts of requests give the same observations as single requests."""
    silent_end: bool | None = None
    """In real time, a request for a future loop is never answered if the game ends first."""
    after_stop: str | None = None
    """How a game in real time continues after a signal has stopped it: one of `AFTER_STOP`."""
    measured: str = ""
    """The date of the measurement (ISO 8601); empty if nothing was measured."""


NOTHING_SETTLED: Final = Settled()
"""All facts are unknown."""


def settled_on(installation: Installation) -> Settled:
    """The stored facts about this installation.

    All are unknown if the file is missing, unreadable, not this user's own, or writable by others.
    """
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
    """Store these facts in place of all earlier ones; returns their private file.

    Raises:
        ConfigError: this user has no cache folder.
        OSError: the executable cannot be read, or the file cannot be written.
    """
    path = _path(installation)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.unlink(missing_ok=True)  # an old file may have another mode
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps(asdict(settled), indent=2) + "\n", encoding="utf-8")
    return path


def _path(installation: Installation) -> Path:
    name = f"Base{installation.base_build}-{_identity(installation.executable)}.json"
    return cache_folder() / "settled" / name


def _identity(executable: Path) -> str:
    """A hash that changes if the path starts another program."""
    found = executable.stat()
    if found.st_size < SMALL_BYTES:
        known = executable.read_bytes()
    else:
        known = f"{found.st_size} {found.st_mtime_ns}".encode()
    return hashlib.sha256(os.fsencode(executable) + b"\0" + known).hexdigest()[:16]


def _own_content(path: Path) -> bytes:
    """The content of a private file.

    Raises:
        OSError: the file is missing, unreadable, not a regular file, or not private to this user.
    """
    # O_NONBLOCK, because opening a named pipe would wait.
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
    """The facts in a file's content.

    Raises:
        ValueError, RecursionError: `settle` cannot have written this content.
    """
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
