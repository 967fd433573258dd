"""What `sc2pool play` plays: the model of a run's folder, or one in a file, and its task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sc2pool.cli.arguments import task_class
from sc2pool.cli.training.run_folder import BEST_MODEL_FILE, MODEL_FILE, read_config
from sc2pool.errors import ConfigError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.models import SavedModel


@dataclass(frozen=True)
class Subject:
    """A model and the task that it plays."""

    path: Path
    model: SavedModel
    task: type[TaskDefinition]
    game: str
    """Which game: auto, real, or an installation's folder."""


def find_subject(given: Path, task: str | None, game: str | None) -> Subject:
    """The model in a run's folder, the one of its best evaluation if there is one; or a file's.

    Args:
        given: the folder or the file.
        task: the task's name; None for the one that the model was trained for.
        game: as in `Subject`; None for the one that the run was trained on.

    Raises:
        ConfigError: no such model, it does not say its task, or it is for other spaces.
    """
    path = _model_in(given)
    trained = read_config(path.parent).get("options", {})
    name = task or trained.get("task")
    if name is None:
        raise ConfigError(f"{path}: nothing beside it says which task it plays; give --task")
    definition = task_class(name)
    model = SavedModel(path.stem, path)
    model.check_spaces(definition.observation_space, definition.action_space)
    return Subject(path, model, definition, game or trained.get("game") or "auto")


def _model_in(given: Path) -> Path:
    if not given.exists():
        raise ConfigError(f"{given}: no such run's folder and no such model")
    if not given.is_dir():
        return given
    found = [given / name for name in (BEST_MODEL_FILE, MODEL_FILE) if (given / name).is_file()]
    if not found:
        raise ConfigError(f"{given}: no {MODEL_FILE} in it, so there is nothing to play")
    return found[0]
