"""Finds the player: a run's model, a model's file, or a pretrained, scripted or random player."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.cli.arguments import find_game, hint, task_class
from sc2pool.cli.stop import say
from sc2pool.cli.training.run_folder import BEST_MODEL_FILE, MODEL_FILE, Description, describe
from sc2pool.errors import ConfigError
from sc2pool.integration import (
    DEFAULT_TASK,
    TASK_PLACES,
    Policy,
    SavedModel,
    TaskDefinition,
    pretrained,
    scripted_player,
    space_layout,
    spelled_task,
)

RANDOM, SCRIPTED = "random", "scripted"


@dataclass(frozen=True)
class ChosenPlayer:
    name: str
    """The path of the model's file, "scripted" or "random"."""
    task: type[TaskDefinition]
    game: str
    """The game to play: auto, real, standin, or an installation's folder."""

    def policy(self, seed: int | None) -> Policy:
        """The player's policy for all rows of a batch; with a seed, its random draws repeat."""
        if self.name == RANDOM:
            return RandomPolicy(self.task.action_space, seed)
        if self.name == SCRIPTED:
            return FunctionPolicy(scripted_function(self.task), self.task.observation_space)
        policy = SavedModel(self.name, Path(self.name)).load()
        if seed is not None:
            import torch  # noqa: PLC0415 - the policy has imported it

            torch.manual_seed(seed)
        return policy


def find_player(given: str, task: str | None, game: str | None) -> ChosenPlayer:
    """The player that the user has named; for a run with evaluations, its best model.

    `given` is a run's folder, a model's file, a pretrained policy's name, "scripted" or "random".
    If `task` or `game` is None, the run's task or game is used. If the run's game is a path, the
    path is printed. Raises `ConfigError` if no such model is found, if the task is unknown, if its
    spaces differ from the model's, or if it has no scripted player.
    """
    if given in (RANDOM, SCRIPTED):
        definition = task_class(task or DEFAULT_TASK)
        if given == SCRIPTED:
            scripted_function(definition)
        find_game(game or "auto", definition, says=False)  # report errors before torch loads
        return ChosenPlayer(given, definition, game or "auto")
    path = playable_model(given)
    bundled = pretrained().get(spelled_task(given))
    run = describe(Path(given)) if bundled is None else Description({}, {"task": bundled.task}, "")
    name = task or run.options.get("task")
    if name is None:
        raise ConfigError(f"{path}: {run.why_no_task}; give --task")
    folder = None if task is not None else run.task_folder
    definition = task_class(name, named=task is not None, folder=folder)
    SavedModel(path.stem, path).check_spaces(definition.observation_space, definition.action_space)
    say_if_normalized(path)
    game = game or run.say_game() or "auto"
    find_game(game, definition, says=False)
    return ChosenPlayer(str(path), definition, game)


def say_if_normalized(path: Path) -> None:
    """Print a warning if a model that now gets raw observations was trained on normalised ones."""
    if SavedModel(path.stem, path).is_of_normalized():
        say(
            f"{path} was trained under VecNormalize, whose statistics are not in the file: it sees "
            "the task's own observations here, and may play badly"
        )


def playable_model(given: str) -> Path:
    """The file of a model, from its path, a run's folder or a pretrained policy's name.

    A pretrained policy's name is never read as a path, because another user may have made a folder
    of that name. Raises `ConfigError` if no model was found.
    """
    bundled = pretrained().get(spelled_task(given))
    if bundled is not None:
        return bundled.path
    path = Path(given)
    if not path.exists():
        raise ConfigError(
            f"{path}: no such run's folder, no such model, and no pretrained policy of that name "
            f"(there are {', '.join(pretrained())}){hint_of_player(given)}"
        )
    if not path.is_dir():
        return path
    found = [path / name for name in (BEST_MODEL_FILE, MODEL_FILE) if (path / name).is_file()]
    if not found:
        raise ConfigError(f"{path}: no {MODEL_FILE} in it, so there is nothing to play")
    return found[0]


def hint_of_player(given: str) -> str:
    """A suggestion for an unknown player: a similar name, or how to give a task."""
    if ":" in given or spelled_task(given) in TASK_PLACES:
        return f"; for a task say who plays it: {RANDOM} --task {given}"
    return hint(given, (RANDOM, SCRIPTED, *pretrained()))


def scripted_function(task: type[TaskDefinition]) -> Any:
    """The task's scripted player, a function; raises `ConfigError` if the task has none."""
    found = scripted_player(task)
    if found is None:
        raise ConfigError(f"{SCRIPTED}: {task.__name__} has no scripted player")
    return found


class FunctionPolicy:
    """A policy for a batch of rows; `function` maps one row's observation to its action."""

    def __init__(self, function: Any, space: spaces.Space[Any]) -> None:
        self._function = function
        self._space = space

    def predict(self, observation: Any, state: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
        """SB3 calls this method; `observation` is a batch; arguments after `state` are ignored."""
        return [self._function(row) for row in rows_of(self._space, observation)], state


class RandomPolicy:
    """Draws uniformly random actions; if the task has masks, it draws only possible actions."""

    def __init__(self, space: spaces.Space[Any], seed: int | None) -> None:
        self._space = space
        self._random = np.random.default_rng(seed)
        self._space.seed(seed)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, Any]:
        """The method that SB3 calls; only the number of rows and the masks are used."""
        del observation, deterministic
        masks = [None] * len(episode_start) if action_masks is None else action_masks
        return [self._draw(mask) for mask in masks], state

    def _draw(self, mask: Any) -> Any:
        space = self._space
        if mask is None:
            return space.sample()
        first, counts = np.array(0), np.array(2)  # a bit has two values, 0 and 1
        if isinstance(space, spaces.Discrete):
            first, counts = np.array(space.start), np.array(space.n)
        elif isinstance(space, spaces.MultiDiscrete):
            first, counts = space.start, space.nvec
        shape = space.shape or ()
        parts = np.split(mask, np.cumsum(np.broadcast_to(counts, shape))[:-1])
        drawn = [self._random.choice(np.flatnonzero(part)) for part in parts]
        return (np.reshape(drawn, shape) + first).astype(space.dtype)


def rows_of(space: spaces.Space[Any], batch: Any) -> list[Any]:
    """Each row's observation, from a batch of `VecEnv.step`."""
    if isinstance(space, spaces.Dict | spaces.Tuple) and space_layout(space, 0).fixed:
        parts = list(space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space))
        of_parts = zip(*(rows_of(part, batch[key]) for key, part in parts), strict=True)
        if isinstance(space, spaces.Tuple):
            return list(of_parts)
        return [dict(zip(space.spaces, row, strict=True)) for row in of_parts]
    return list(batch)
