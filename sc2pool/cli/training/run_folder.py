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
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from sc2pool.errors import ConfigError

MODEL_FILE = "model.zip"
CURVE_FILE = "learning_curve.png"
EPISODES_FILE = "episodes.csv"
PROGRESS_FILE = "progress.csv"
CONFIG_FILE = "config.json"

_PPO_DATA = (
    "num_timesteps",
    "observation_space",
    "action_space",
    "policy_class",
    "n_steps",
    "n_epochs",
    "gae_lambda",
    "clip_range",
)
"""Attributes of SB3's PPO that its other algorithms do not all have."""
_PPO_PARTS = ("policy.pth", "policy.optimizer.pth")


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
    """How many env steps the policy in this file was trained for.

    Raises:
        ConfigError: PPO cannot go on from this file; says why in one line.
    """
    try:
        with zipfile.ZipFile(model) as archive:
            data = json.loads(archive.read("data"))
            parts = set(archive.namelist())
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ConfigError(f"--resume {model}: not a model saved by training ({error})") from error
    wrong = _why_not_ppo(data, parts)
    if wrong:
        raise ConfigError(f"--resume {model}: not a PPO model saved by training ({wrong})")
    return int(data["num_timesteps"])


def _why_not_ppo(data: Any, parts: Set[str]) -> str:
    """What SB3's PPO would miss in a saved model; empty for nothing.

    Args:
        data: the attributes that were saved.
        parts: the names in the archive.
    """
    if not isinstance(data, dict):
        return f"its data is a {type(data).__name__}, expected a dict"
    lacking = [name for name in _PPO_DATA if name not in data] + [
        name for name in _PPO_PARTS if name not in parts
    ]
    if lacking:
        return f"it lacks {', '.join(lacking)}"
    steps = data["num_timesteps"]
    if type(steps) is not int or steps < 0:
        return f"num_timesteps is {steps!r}, expected a whole number of at least 0"
    policy = data["policy_class"]
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if not str(module).startswith("stable_baselines3."):
        return f"its policy is of {module}, expected one of stable_baselines3"
    return ""


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
