"""What `sc2pool doctor --full` has settled about a game, kept for later pools on the same build.

    doctor ── settle ──► cache/settled/Base75689-….json ──► settled_on ── a pool

The file's name holds the build and a hash that identifies the executable, so an update of the game
makes the facts unknown again. A small executable is a start script: its content is hashed, because
a script that passes other options starts another game. Of a large one path, size and time of
change are hashed.

Rules: `settled_on` never raises, and trusts only a regular file that belongs to this user and that
nobody else may write to; a fact that is unknown is None.
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
"""An executable below this size is taken for a start script."""
_MOST_BYTES: Final = 1 << 16
"""Size of the largest file that is read."""
AFTER_STOP: Final = ("freeze", "catch-up", "in part")
"""The values of `Settled.after_stop`."""


@dataclass(frozen=True)
class Settled:
    """Facts about one game that its documentation leaves open; None if a fact was not measured."""

    restart_faithful: bool | None = None
    """restart_game brings back everything that an episode has used up, minerals among it."""
    restart_with_computer: bool | None = None
    """The same holds for games with a computer, and for players of a Random race."""
    bursts_in_matches: bool | None = None
    """In a match, bursts of requests give the same observations as single requests."""
    silent_end: bool | None = None
    """In real time, a request for a future loop is never answered if the game ends first."""
    after_stop: str | None = None
    """What a real-time game does when it was stopped by a signal and continues: one of
    `AFTER_STOP`."""
    measured: str = ""
    """The date of the measurement (ISO 8601); empty if nothing was measured."""


NOTHING_SETTLED: Final = Settled()
"""No fact was measured."""


def settled_on(installation: Installation) -> Settled:
    """The facts that were settled on this installation; all unknown if none were.

    A file that is missing, not this user's own, writable by others or unreadable counts as none.
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
    """Keep these facts in place of all earlier ones; returns their file, which is private.

    Raises:
        ConfigError: this user has no cache folder.
        OSError: the executable cannot be read, or the file cannot be written.
    """
    path = _path(installation)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.unlink(missing_ok=True)  # its mode may be another
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps(asdict(settled), indent=2) + "\n", encoding="utf-8")
    return path


def _path(installation: Installation) -> Path:
    name = f"Base{installation.base_build}-{_identity(installation.executable)}.json"
    return cache_folder() / "settled" / name


def _identity(executable: Path) -> str:
    """A hash that changes if another program is started by this path."""
    found = executable.stat()
    if found.st_size < SMALL_BYTES:
        known = executable.read_bytes()
    else:
        known = f"{found.st_size} {found.st_mtime_ns}".encode()
    return hashlib.sha256(os.fsencode(executable) + b"\0" + known).hexdigest()[:16]


def _own_content(path: Path) -> bytes:
    """The content of a private file.

    Raises:
        OSError: it is missing or unreadable, no regular file, or not this user's alone.
    """
    # Without O_NONBLOCK a named pipe would be waited for.
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
        ValueError, RecursionError: it is not what `settle` writes.
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
