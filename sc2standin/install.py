"""Writes an installation of the stand-in, with the folders of a StarCraft II installation.

* File DIR/Versions/Base<N>/SC2_x64: a script that runs the stand-in in this Python. On Windows
  the program SC2_x64.exe takes the script's place, and an empty folder DIR/Support64 is added.
* Folder DIR/Maps/mini_games: the maps of the mini-games.
* Folder DIR/Maps/Melee: the melee map Simple64, with a copy for pysc2 (Simple96) and a flat variant
  (Flat64).
* Folder DIR/Maps/Ladder: copies of Simple64, named after ladder maps (`LADDER`).
* Folder DIR/Maps/SMAC_Maps: the maps of SMAC and SMACv2, where their packages look for them.
* Folder DIR/Maps/SMAC_Duels: variants of SMAC's maps for two players.
* File DIR/sc2pool-standin.txt: marks the directory as an installation of the stand-in.

Only an empty directory or an installation is changed. Every file is replaced atomically, so several
processes may install at the same time. Installing again replaces files that have changed.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import sc2standin
from sc2standin.replacing import replace_file
from sc2standin.version import BASE_BUILD

MARKER = "sc2pool-standin.txt"
_TRIES, _PAUSE_S = 100 if sys.platform == "win32" else 1, 0.05
"""How often to try to replace a file, and the pause between tries; Windows locks files in use."""
LADDER = (
    *("AcropolisLE", "Acropolis", "Abyssal Reef LE", "AbyssalReefLE", "(2)CatalystLE"),
    *("CatalystLE", "PillarsofGoldLE", "AutomatonLE", "KairosJunctionLE", "EphemeronLE"),
    *("ThunderbirdLE", "2000AtmospheresAIE", "BerlingradAIE", "HardwireAIE", "GresvanAIE"),
    "StargazersAIE",
)
"""The names of ladder maps that python-sc2's examples and its users' bots ask for."""
_MARKER_TEXT = """\
This is not StarCraft II. It is the stand-in game of sc2pool, which speaks the same protocol
with simplified rules. The directory may be deleted; sc2pool writes it again.
"""


class InstallError(Exception):
    """The installation failed; the message says why."""


def install(directory: Path, options: Sequence[str] = ()) -> Path:
    """Make `directory` an installation; returns the path of its executable.

    Args:
        directory: an empty or missing directory, or an existing installation.
        options: options that the start script adds to the command line (see `command`).
    """
    try:
        directory = directory.expanduser().absolute()
        _check_is_ours_or_empty(directory)
        directory.mkdir(parents=True, exist_ok=True)
        # Write the marker first, so that an unfinished installation is recognised as ours.
        _write(directory / MARKER, _MARKER_TEXT.encode(), 0o644)
        for folder, name, content in _maps():
            _write(directory / "Maps" / folder / name, content, 0o644)
        executable = directory / "Versions" / f"Base{BASE_BUILD}" / "SC2_x64"
        if sys.platform == "win32":
            executable = executable.with_suffix(".exe")
            (directory / "Support64").mkdir(exist_ok=True)
            _write(executable, _windows_launcher(options), 0o755)
        else:
            _write(executable, _launcher(options).encode(), 0o755)
    except (OSError, RuntimeError) as error:  # RuntimeError means that the user after ~ is unknown
        raise InstallError(f"cannot install the stand-in in {directory}: {error}") from error
    return executable


def _maps() -> Iterator[tuple[str, str, bytes]]:
    """The folder, name and content of each map."""
    ours = resources.files("sc2standin").joinpath("maps")
    for folder, sources in (
        ("mini_games", ours),
        ("Melee", ours / "melee"),
        ("SMAC_Maps", ours / "smac"),
        ("SMAC_Maps", ours / "smacv2"),
        ("SMAC_Duels", ours / "smac_duels"),
    ):
        for source in sources.iterdir():
            if source.name.endswith(".SC2Map"):
                yield folder, source.name, source.read_bytes()
    simple = json.loads((ours / "melee" / "Simple64.SC2Map").read_text())
    # Flat64 is for tests whose clients create units of any race, anywhere up to the edges.
    flat = {key: value for key, value in simple.items() if key != "ground"}
    flat["playable_area"] = [[0, 0], simple["size"]]
    flat["melee"] = simple["melee"] | {"any_race": True}
    for folder, name, scenario in (
        ("Melee", "Simple96", simple),
        ("Melee", "Flat64", flat),
        *(("Ladder", name, simple) for name in LADDER),
    ):
        yield folder, f"{name}.SC2Map", json.dumps(scenario | {"name": name}).encode()


def _check_is_ours_or_empty(directory: Path) -> None:
    if not directory.exists():
        return
    if not directory.is_dir():
        raise InstallError(f"{directory} is not a directory")
    if (directory / MARKER).is_file():
        return
    # Ignore temporary files of the marker, because another process may be writing the marker.
    others = [path.name for path in directory.iterdir() if not path.name.startswith(f".{MARKER}")]
    if others and not (directory / MARKER).is_file():
        raise InstallError(
            f"{directory} is neither empty nor a stand-in installation "
            f"(it holds {', '.join(sorted(others)[:3])}); nothing was written"
        )


def _launcher(options: Sequence[str]) -> str:
    """A shell script that is replaced by this Python (`exec`), so that the process keeps its id.

    If a client gives no `-dataDir`, the game uses the installation that contains the script.
    """
    package_parent = str(Path(sc2standin.__path__[0]).resolve().parent)
    ours = "".join(f"{option} " for option in options)
    return (
        "#!/bin/sh\n"
        f"PYTHONPATH={shlex.quote(package_parent)}${{PYTHONPATH:+:$PYTHONPATH}}\n"
        # The simulation has one thread, so numpy's pool of threads would only use memory.
        "OPENBLAS_NUM_THREADS=1\n"
        "export PYTHONPATH OPENBLAS_NUM_THREADS\n"
        # The option -P prevents imports of modules in the working directory.
        f"exec {shlex.quote(sys.executable)} -P -m sc2standin"
        f' -dataDir "${{0%/*}}/../.." {ours}"$@"\n'
    )


def _windows_launcher(options: Sequence[str]) -> bytes:
    """A program that runs the stand-in in this Python; the two processes end together."""
    package_parent = str(Path(sc2standin.__path__[0]).resolve().parent)
    return windows_program(
        "import os, sys\n"
        f"sys.path.insert(0, {package_parent!r})\n"
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"  # numpy's threads would only use memory
        "from sc2standin.command import main\n"
        "folder = os.path.join(os.path.dirname(sys.argv[0]), '..', '..')\n"
        f"sys.exit(main(['-dataDir', folder, *{list(options)!r}, *sys.argv[1:]]))\n"
    )


def windows_program(main: str) -> bytes:
    """A program for Windows that runs these lines of code in this Python.

    The program begins with distlib's launcher, which pip uses for installed scripts. The
    launcher is followed by the name of the Python to run, and by an archive with the lines of code.
    """
    launcher = resources.files("distlib").joinpath("t64.exe").read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo("__main__.py"), main)  # a time stamp would change the bytes
    return launcher + f'#!"{sys.executable}" -P\r\n'.encode() + archive.getvalue()


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write the file atomically, unless it already has this content and mode."""
    for left in reversed(range(_TRIES)):
        try:
            _write_once(path, content, mode)
        except PermissionError:
            if not left:
                raise
            time.sleep(_PAUSE_S)
        else:
            break


def _write_once(path: Path, content: bytes, mode: int) -> None:
    try:
        has_mode = sys.platform == "win32" or path.stat().st_mode & 0o777 == mode
        if path.read_bytes() == content and has_mode:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode)
