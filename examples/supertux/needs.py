"""Checks that the game, Xvfb and two Python packages are installed; says how to install them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Final

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS

GAME: Final = "supertux2"
DISPLAY_SERVER: Final = "Xvfb"
APT: Final = "apt-get install --no-install-recommends supertux xvfb libgl1-mesa-dri"
PIP: Final = 'pip install "sc2pool[supertux]"'
_MODULES: Final = ("mss", "Xlib")
_GAME_FOLDER: Final = "/usr/games"
"""Where Debian installs games; not in every user's PATH."""


def program(name: str) -> str:
    """The path of an installed program.

    Raises:
        ConfigError: the program is not installed; says how to install it.
    """
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_GAME_FOLDER}")
    if path is None:
        raise ConfigError(f"there is no program {name}; on Debian and Ubuntu: {APT}")
    return path


def check_installed() -> None:
    """Check everything before anything is started.

    Raises:
        ConfigError: something is missing; says how to install it.
    """
    if WINDOWS:
        raise ConfigError("SuperTux is played on a virtual display of X11, which Windows lacks")
    program(GAME)
    program(DISPLAY_SERVER)
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"there is no Python module {' nor '.join(missing)}; {PIP}")
