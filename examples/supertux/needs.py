"""Checks that the game, Xvfb and two Python packages are installed; errors say how to install them.

On Windows the game and one package are enough.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Final

from sc2pool.errors import ConfigError
from sc2pool.optional import how_to_install
from sc2pool.platform import WINDOWS

GAME: Final = "supertux2"
DISPLAY_SERVER: Final = "Xvfb"
APT: Final = "apt-get install --no-install-recommends supertux xvfb libgl1-mesa-dri"
SITE: Final = "https://www.supertux.org"
_MODULES: Final = ("mss",) if WINDOWS else ("mss", "Xlib")
_GAME_FOLDER: Final = (
    str(Path(os.environ.get("PROGRAMFILES", "C:\\Program Files"), "SuperTux", "bin"))
    if WINDOWS
    else "/usr/games"
)
"""The folder where Debian, or the game's own installer, puts it; may not be in the PATH."""


def program(name: str) -> str:
    """The path of an installed program.

    Raises:
        ConfigError: the program is not installed; says how to install it.
    """
    folders = os.environ.get("PATH", os.defpath), _GAME_FOLDER
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        how = f"install it from {SITE}" if WINDOWS else f"on Debian and Ubuntu: {APT}"
        raise ConfigError(f"there is no program {name}; {how}")
    return path


def check_installed() -> None:
    """Check everything before anything is started.

    Raises:
        ConfigError: something is missing; says how to install it.
    """
    program(GAME)
    if not WINDOWS:
        program(DISPLAY_SERVER)
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        how = how_to_install("supertux")
        raise ConfigError(f"there is no Python module {' nor '.join(missing)}; {how}")
