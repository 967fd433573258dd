"""The folder of a training run: its files, and what a resumed run reads from them.

model.zip            the policy; SB3's format
learning_curve.png   redrawn while the run goes on
episodes.csv         one row per episode
progress.csv         SB3's figures and the pool's, one row per update; also as TensorBoard events
config.json          options, hyperparameters and versions
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sc2pool.errors import ConfigError

MODEL_FILE = "model.zip"
CURVE_FILE = "learning_curve.png"
EPISODES_FILE = "episodes.csv"
PROGRESS_FILE = "progress.csv"
CONFIG_FILE = "config.json"


def open_folder(out: Path, resume: Path | None, description: Mapping[str, Any]) -> None:
    """Make the folder and describe the run in it.

    Args:
        out: the folder.
        resume: the model file that the run continues; the records beside it are copied.
        description: for `config.json`.

    Raises:
        ConfigError: the folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be made ({error.strerror})") from error
    if resume is not None and resume.parent.resolve() != out.resolve():
        for name in (EPISODES_FILE, PROGRESS_FILE):
            if (resume.parent / name).exists():
                shutil.copy(resume.parent / name, out / name)
    (out / CONFIG_FILE).write_text(json.dumps(description, indent=2, default=str) + "\n")


def find_model(path: Path) -> Path:
    """The model file of `--resume PATH`, which is a run's folder or the file itself."""
    if not path.exists():
        raise ConfigError(f"--resume {path}: no such file or folder")
    model = path / MODEL_FILE if path.is_dir() else path
    if not model.exists():
        raise ConfigError(
            f"--resume {path}: no {MODEL_FILE} in it, so there is nothing to continue"
        )
    return model


def read_steps(model: Path) -> int:
    """How many env steps the policy in this file was trained for."""
    try:
        with zipfile.ZipFile(model) as archive:
            return int(json.loads(archive.read("data"))["num_timesteps"])
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ConfigError(f"--resume {model}: not a model saved by training ({error})") from error


def read_config(folder: Path) -> dict[str, Any]:
    """The options of an earlier run, empty if it left none."""
    try:
        return dict(json.loads((folder / CONFIG_FILE).read_text())["options"])
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder / CONFIG_FILE} is not a run's description: {error}") from error


def unused(folder: Path) -> Path:
    """`folder`, with a number appended if it exists."""
    candidate, number = folder, 2
    while candidate.exists():
        candidate, number = Path(f"{folder}-{number}"), number + 1
    return candidate
