"""Errors for optional packages that are missing.

Rule: the core of sc2pool imports no optional package; a feature imports its package at first use,
inside `needed_for`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sc2pool.errors import MissingPackageError
from sc2pool.shell import called

EXTRAS: Final = {
    "stable_baselines3": ("stable-baselines3", "sb3"),
    "torch": ("torch", "sb3"),
    "sc2": ("burnysc2", "bot"),
    "loguru": ("burnysc2", "bot"),
    "PIL": ("pillow", "render"),
    "matplotlib": ("matplotlib", "train"),
    "tensorboard": ("tensorboard", "train"),
    "yaml": ("pyyaml", "train"),
    "sb3_contrib": ("sb3-contrib", "contrib"),
    "imageio_ffmpeg": ("imageio-ffmpeg", "video"),
    "shtab": ("shtab", "completion"),
    "minari": ("minari[hdf5]", "minari"),
    "h5py": ("minari[hdf5]", "minari"),
    "optuna": ("optuna", "tune"),
    "wandb": ("wandb", "wandb"),
    "prometheus_client": ("prometheus_client", "metrics"),
    "ray": ("ray[rllib]", "ray"),
    "tianshou": ("tianshou", "tianshou"),
    "pettingzoo": ("pettingzoo", "pettingzoo"),
    "mss": ("mss", "screen"),
    "Xlib": ("python-xlib", "screen"),
}
"""For each module, the distribution that provides it and the extra that installs it."""


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """If an import in the block fails, raise one clear error.

    Args:
        what: The feature that needs the import.

    Raises:
        MissingPackageError: a package of an extra is missing, or its installation is damaged.
    """
    try:
        yield
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        if error.path and module not in EXTRAS:  # the name may be a C library's
            module = "".join(Path(error.path.rpartition("site-packages")[2]).parts[1:2])
        if module not in EXTRAS:
            raise
        missing = _missing(what, module)
        if not isinstance(error, ModuleNotFoundError):
            missing = MissingPackageError(f"{missing}; the installed one fails: {error}")
        raise missing from error


def require(what: str, module: str) -> None:
    """Check that a feature's package can be imported, without importing it.

    Raises:
        MissingPackageError: the module cannot be imported.
    """
    if find_spec(module) is None:
        raise _missing(what, module)


def _missing(what: str, module: str) -> MissingPackageError:
    distribution, extra = EXTRAS[module]
    return MissingPackageError(f"{what} needs {distribution}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """The command that installs an extra of sc2pool into this environment.

    The pip of this environment finds sc2pool installed, so it does not look for sc2pool in an
    index.
    """
    return f'{called("pip")} install "sc2pool[{extra}]"'
