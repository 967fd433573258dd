"""Finds the installation to play, its executable and its maps.

    `"auto"` takes SC2PATH, else the platform's usual place, else the stand-in in the user's cache.
    `"real"` looks at SC2PATH and at the usual places, but never at the stand-in.
    `PATH` looks only at the installation at this path.

Rules: every installation is checked in the same way, and no later code knows whether the game is
the real one. A given path without an installation is an error. If one of the usual places exists,
the places after it are not tried. Results are not cached, and installations are not changed.

Inside WSL only the Linux game is searched for; a game under `/mnt/c` must be played from Windows.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from sc2pool.errors import ConfigError
from sc2pool.foreign import REFUSED_PATH
from sc2pool.platform import SYSTEM, WINDOWS
from sc2pool.processes.spawn import describe_exit, run_python

logger = logging.getLogger("sc2pool")

OLDEST_BUILD: Final = 55_958
"""Version 3.16.1, the first version with a documented API."""
MAP_SUFFIX: Final = ".SC2Map"
_BASE_FOLDER: Final = re.compile(r"Base(\d+)")

_CACHE_VARIABLE: Final = "WIN_PD_OVERRIDE_LOCAL_APPDATA" if WINDOWS else "XDG_CACHE_HOME"
"""The environment variable from which platformdirs takes the user's cache folder, if it is set."""
STAND_IN_S: Final = 120.0
"""An interpreter must start and write the stand-in's small files within this many seconds."""


@dataclass(frozen=True)
class Platform:
    """The game's paths on one operating system."""

    usual_places: tuple[str, ...]
    executable: str
    """The executable's path, relative to the folder of a version."""
    working_directory: str | None
    """The working directory, relative to the installation; None if any directory will do."""
    execute_info: str | None
    """A file in the home directory, in which the game stores the path of its last start."""


PLATFORMS: Final = {
    "linux": Platform(("~/StarCraftII",), "SC2_x64", None, None),
    "darwin": Platform(
        ("/Applications/StarCraft II",),
        "SC2.app/Contents/MacOS/SC2",
        None,
        "Library/Application Support/Blizzard/StarCraft II/ExecuteInfo.txt",
    ),
    "win32": Platform(
        ("C:/Program Files (x86)/StarCraft II", "C:/Program Files/StarCraft II"),
        "SC2_x64.exe",
        "Support64",
        "Documents/StarCraft II/ExecuteInfo.txt",
    ),
}


@dataclass(frozen=True)
class Installation:
    """A directory that has been checked to hold a game."""

    root: Path
    executable: Path
    base_build: int
    maps: Path | None
    """The folder of maps; None if there is none, as in a new retail installation."""
    cwd: Path | None
    """The working directory that the game needs; None if any directory will do."""
    found_by: str = ""
    """How the game was found: by the `game` argument, SC2PATH, a usual place, or as stand-in."""


@contextmanager
def _readable() -> Iterator[None]:
    """Raise `ConfigError` if the system refuses to read a file or folder, or refuses its name."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED_PATH:
            raise
        raise ConfigError(f"{error.filename} may not be read: {error.strerror}") from error


@_readable()
def find_installation(game: str | os.PathLike[str] = "auto", *, says: bool = True) -> Installation:
    """Finds the installation to play.

    Args:
        game: `"auto"`, `"real"`, `"standin"`, or the path of an installation.
        says: True to log a warning, once, if "auto" plays the stand-in.

    Raises:
        ConfigError: no readable installation was found. The message lists the searched places.
    """
    if not isinstance(game, str | os.PathLike):
        raise ConfigError(
            f"game must be 'auto', 'real', 'standin' or the path of an installation, got {game!r}"
        )
    if game == "standin":
        return read_installation(write_stand_in(), "the stand-in (game='standin')")
    if game not in ("auto", "real"):
        return read_installation(_expanded(game), f"game={os.fspath(game)!r}")
    named = os.environ.get("SC2PATH")
    if named:
        return read_installation(_expanded(named), f"SC2PATH={named!r}")
    system = _this_platform()
    places = usual_places(system)
    for place in places:
        if place.exists():
            return read_installation(place, "the usual place on this system")
    looked = ", ".join(map(str, places or system.usual_places))
    if game == "auto":
        root = write_stand_in()
        if says:
            _say_no_game(root)
        why = f"the stand-in (SC2PATH is not set, and there is nothing at {looked})"
        return read_installation(root, why)
    raise ConfigError(
        f"no StarCraft II found: SC2PATH is not set, and there is nothing at {looked}. "
        'Set SC2PATH to the installation, or use game="auto" to play the stand-in'
    )


@cache
def _say_no_game(root: Path) -> None:
    logger.warning(
        "No StarCraft II found (SC2PATH is not set): playing the stand-in game at %s", root
    )


def usual_places(system: Platform) -> list[Path]:
    """The usual places of an installation on `system`, the likeliest place first."""
    places = []
    with suppress(RuntimeError):  # there may be no home directory
        noted = _from_execute_info(system)
        if noted is not None:
            places.append(noted)
        places += [Path(place).expanduser() for place in system.usual_places]
    return places


def read_installation(root: Path, why: str) -> Installation:
    """The game in `root`. ConfigError if it cannot be played; `why` tells how `root` was found."""
    system = _this_platform()
    root = Path(os.path.abspath(root))  # noqa: PTH100  # unlike `resolve`, this keeps links
    _require_utf8(root)
    if not root.is_dir():
        problem = "is not a directory" if root.exists() else "does not exist"
        raise ConfigError(f"{why} is no StarCraft II installation: {root} {problem}")
    build, folder = _newest_version(root, why)
    executable = folder / system.executable
    if not executable.is_file():
        raise ConfigError(f"{why} is no StarCraft II installation: no file {executable}")
    if not os.access(executable, os.X_OK):
        noexec = ": its file system is mounted noexec" if _is_noexec(executable) else ""
        raise ConfigError(f"{why} cannot be played: {executable} may not be executed{noexec}")
    cwd = root / system.working_directory if system.working_directory else None
    return Installation(
        root=root,
        executable=executable,
        base_build=build,
        maps=next((maps for maps in (root / "Maps", root / "maps") if maps.is_dir()), None),
        cwd=cwd if cwd and cwd.is_dir() else None,
        found_by=why,
    )


@_readable()
def find_map(installation: Installation, name: str) -> Path:
    """Finds the file of a map in the installation's map folder and its subfolders.

    Args:
        name: A file name or a path within the map folder, with or without `.SC2Map`, or the
            absolute path of a map file. Upper and lower case matter only if two maps' names differ
            in nothing else.

    Raises:
        ConfigError: the map was not found, or a folder cannot be read. The message names the folder
            and similar names.
    """
    wanted = Path(name if name.lower().endswith(MAP_SUFFIX.lower()) else name + MAP_SUFFIX)
    if wanted.is_absolute():
        if wanted.is_file():
            _require_utf8(wanted)
            return wanted
        raise ConfigError(f"no map {name!r}: there is no file {wanted}")
    if installation.maps is None:
        raise ConfigError(f"no map {name!r}: {installation.root} has no folder Maps")
    # `rglob` silently skips a folder without read permission; `listdir` raises an error.
    os.listdir(installation.maps)  # noqa: PTH208
    known = sorted(
        file
        for file in installation.maps.rglob("*")
        if file.suffix.lower() == MAP_SUFFIX.lower() and file.is_file()
    )
    for same in (str, str.lower):
        tail = tuple(same(part) for part in wanted.parts)
        for file in known:
            if tuple(same(part) for part in file.parts[-len(tail) :]) == tail:
                return file
    raise ConfigError(f"no map {name!r} in {installation.maps}{_similar(wanted.stem, known)}")


def made_with(map_path: Path) -> str:
    """The version of the editor that saved a map, as `4.7.0 (build 70154)`; empty if unknown.

    A map file is an archive, which mpyq (a dependency of python-sc2) reads. Its `DocumentHeader`
    holds the letters H2CS, two words, one byte, three bytes with the version's numbers, and the
    build as a little-endian word. This format was derived from maps of known versions.
    """
    try:
        import mpyq  # type: ignore[import-untyped]  # noqa: PLC0415 - needed only if a map cannot be played

        header = mpyq.MPQArchive(str(map_path)).read_file("DocumentHeader")
        magic, *version, build = struct.unpack_from("<4s8x x3B I", header)
    except Exception:  # a broken archive raises errors of many kinds
        return ""
    return "{}.{}.{} (build {})".format(*version, build) if magic == b"H2CS" else ""


def _require_utf8(path: Path) -> None:
    """Raise ConfigError if a path is not UTF-8, because the API's messages can hold only UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path)
        raise ConfigError(
            f"the game cannot be told of the path {shown!r}, which is not UTF-8; "
            "put it somewhere else (the stand-in lies in the cache folder: XDG_CACHE_HOME)"
        ) from None


def _newest_version(root: Path, why: str) -> tuple[int, Path]:
    versions = root / "Versions"
    if not versions.is_dir():
        raise ConfigError(f"{why} is no StarCraft II installation: {root} has no folder Versions")
    found = [
        (int(match[1]), folder)
        for folder in versions.iterdir()
        if (match := _BASE_FOLDER.fullmatch(folder.name)) and folder.is_dir()
    ]
    if not found:
        raise ConfigError(
            f"{why} is no StarCraft II installation: {versions} has no folder BaseNNNNN"
        )
    build, folder = max(found)
    if build < OLDEST_BUILD:
        raise ConfigError(
            f"{why} is too old: its newest version is Base{build}, "
            f"needed is Base{OLDEST_BUILD} (3.16.1)"
        )
    return build, folder


def _this_platform() -> Platform:
    try:
        return PLATFORMS[SYSTEM]
    except KeyError:
        raise ConfigError(f"there is no StarCraft II for {SYSTEM}") from None


def _from_execute_info(system: Platform) -> Path | None:
    """The installation named in the game's own file, `executable = …/Versions/Base…/…`."""
    if system.execute_info is None:
        return None
    try:
        text = (Path.home() / system.execute_info).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"=\s*(.+?)[\\/]+Versions", text)
    return Path(match[1]) if match else None


def _similar(stem: str, known: list[Path]) -> str:
    names = {file.stem.lower(): file.stem for file in known}
    close = difflib.get_close_matches(stem.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"; similar: {', '.join(names[name] for name in close)}"
    return f"; {len(known)} maps are there" if known else "; the folder holds no map"


def _is_noexec(path: Path) -> bool:
    """True if the path's file system forbids executing files."""
    return not WINDOWS and bool(os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0))


def write_stand_in() -> Path:
    """Writes the stand-in to the user's cache, in every call, so that it is never out of date.

    Returns:
        The installation's folder.

    Raises:
        ConfigError: the installation cannot be written.
    """
    # The launcher names this interpreter and this package, so each pair of them has its own folder.
    origin = hashlib.sha256(f"{sys.prefix}\n{__file__}".encode()).hexdigest()[:8]
    root = cache_folder() / f"standin-{metadata.version('sc2pool')}-{origin}"
    failure = f"cannot write the stand-in game to {root}"
    try:
        done = run_python("sc2standin", "install", str(root), timeout_s=STAND_IN_S)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{failure} within {STAND_IN_S:g} s") from None
    if done.returncode != 0:
        said = done.stderr.strip()
        _, is_told, reason = said.rpartition(f"{root}: ")
        if is_told:
            raise ConfigError(f"{failure}: {reason}; set {_CACHE_VARIABLE} to use another folder")
        # The program failed, not the folder: another folder would not help.
        how = describe_exit(done.returncode)
        raise ConfigError(f"{failure}: the program that writes it ended with {how}\n{said}".strip())
    return root


def cache_folder() -> Path:
    """The user's usual cache folder for sc2pool; ConfigError if this user has no home directory."""
    import platformdirs  # noqa: PLC0415 - workers import this module, but need no cache folder

    with suppress(RuntimeError):
        folder = Path(platformdirs.user_cache_dir("sc2pool", appauthor=False))
        if folder.is_absolute():
            return folder
    raise ConfigError(f"no folder for sc2pool's cache: {_NO_HOME}, or XDG_CACHE_HOME")


_NO_HOME: Final = "HOME is not set, and the system knows no home directory of this user; set HOME"


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"cannot expand {os.fspath(path)!r}: {_NO_HOME}") from None
