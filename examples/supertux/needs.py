"""What must be installed, and what to do where it is not."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Final

from sc2pool.errors import ConfigError

GAME: Final = "supertux2"
DISPLAY_SERVER: Final = "Xvfb"
APT: Final = "apt-get install --no-install-recommends supertux xvfb libgl1-mesa-dri"
PIP: Final = "pip install 'sc2pool[supertux]'"
_MODULES: Final = ("mss", "Xlib")
_GAME_FOLDER: Final = "/usr/games"
"""Where Debian puts games; not on everybody's PATH."""


def program(name: str) -> str:
    """The path of an installed program.

    Raises:
        ConfigError: it is not installed; says how to install it.
    """
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_GAME_FOLDER}")
    if path is None:
        raise ConfigError(f"there is no program {name}; on Debian and Ubuntu: {APT}")
    return path


def check_installed() -> None:
    """See that all is there before anything is started.

    Raises:
        ConfigError: something is not; says how to install it.
    """
    program(GAME)
    program(DISPLAY_SERVER)
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"there is no Python module {' nor '.join(missing)}; {PIP}")
