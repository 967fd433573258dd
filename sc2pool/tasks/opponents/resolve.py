"""`resolve`: turns the user's `opponent=` into an `Opponent`, after checking it.

* None: there is no opponent, and both sides are rows of the learner.
* A function: it returns the opponent's action for an observation.
* An object with SB3's `predict`: an SB3 model is sent to workers in its saved form.
* A path: it names a model that SB3 has saved.
* A SnapshotStore: the opponents are earlier policies of the learner.
* A python-sc2 bot: it is given as its class, an object, or a `Bot(race, …)`; see `policies`.
* An Opponent: it acts inside the worker.
* A Computer: it is the game's built-in opponent, which needs no second process.

Rules: all errors are raised as `ConfigError` before any process starts. Opponents are sent to each
worker, so they are small when pickled, and load large parts when their first episode begins.
Policies sample their actions, as in training, instead of taking the best one. In a team task a
policy plays all agents of its side, and each agent sees its own observation, not the state.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium import spaces

from sc2pool.config import Computer
from sc2pool.errors import ConfigError
from sc2pool.tasks.opponents.models import SavedModel, check_spaces, model_pair
from sc2pool.tasks.opponents.policies import (
    FunctionPair,
    PlainBot,
    PredictPair,
    SharedPair,
    bot_opponent,
)
from sc2pool.tasks.opponents.snapshots import FirstOpponent, SnapshotOpponent, SnapshotStore
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.task import TeamTask, agents_of

if TYPE_CHECKING:
    from sc2pool.tasks.task import TaskDefinition


class Opponent(Protocol):
    """Plays the other side of every episode of an env."""

    def begin(self, episode: Episode) -> tuple[str, QueuePair | PlainBot]:
        """The name and the player of this episode.

        Returns:
            The opponent's name (`sc2pool.opponent` in the episode's last info), and its player for
            this episode. The player is a python-sc2 bot or a queue pair. A queue pair gets the
            opponent's transitions and gives its actions, through `put_rows` and `get_actions` for
            all agents of its side, or through `put` and `get_action` for a single agent.
        """
        ...


@dataclass(frozen=True)
class PairOpponent:
    """Plays every episode with new queue pairs, one for each agent of the opponent's side."""

    name: str
    new_pair: Callable[[], QueuePair]
    agents: int = 1

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:  # noqa: ARG002
        return self.name, SharedPair([self.new_pair() for _ in range(self.agents)])


@dataclass(frozen=True)
class ModelOpponent:
    """Plays every episode with a saved model."""

    model: SavedModel
    space: spaces.Space[Any]

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        return self.model.name, model_pair(self.model.load(), self.space, episode)


@dataclass(frozen=True)
class InTurn:
    """Opponents that take turns. Each opponent plays two episodes in a row, so that the learner
    plays both sides."""

    opponents: tuple[Opponent, ...]

    def begin(self, episode: Episode) -> tuple[str, QueuePair | PlainBot]:
        return self.opponents[episode.number // 2 % len(self.opponents)].begin(episode)


def yardsticks(store: SnapshotStore, task: type[TaskDefinition]) -> dict[str, Opponent]:
    """A dict from names to opponents, which measure a learner's progress.

    They are the store's first snapshot ("first"), which may be added later, and the task's scripted
    player ("scripted") if it has one.
    """
    actions = task.action_space
    found: dict[str, Opponent] = {"first": FirstOpponent(store, actions)}
    scripted = getattr(task, "scripted", None)  # a function from observation to action
    if scripted is not None:
        pair = partial(FunctionPair, scripted, actions)
        found["scripted"] = PairOpponent("scripted", pair, agents_of(task))
    return found


def resolve(opponent: Any, task: type[TaskDefinition]) -> Opponent | Computer | None:
    """The opponent that a user has given for a task.

    Raises ConfigError if the opponent is of an unknown kind, its file is missing or is not a model,
    the model is for other spaces, the task has one player, or a computer is to play against a team.
    """
    if opponent is None:
        return None
    if task.players != 2:
        raise ConfigError(
            f"opponent is for a task of two players, and {task.__name__} has {task.players}; "
            f"got opponent={opponent!r}"
        )
    if not isinstance(opponent, Computer):
        return _opponent(opponent, task)
    if issubclass(task, TeamTask):
        raise ConfigError(
            f"{task.__name__} has a team on either side, so its opponent cannot be a Computer; a "
            f"team of one player has one in the attribute opponents, as SMAC's scenarios have"
        )
    return opponent


def _opponent(opponent: Any, task: type[TaskDefinition]) -> Opponent:
    if isinstance(opponent, SnapshotStore):
        for snapshot in opponent.snapshots()[:1]:
            snapshot.check_spaces(task.observation_space, task.action_space)
        return SnapshotOpponent(opponent, task.observation_space, task.action_space)
    if isinstance(opponent, str | os.PathLike):
        path = Path(opponent).absolute()
        return _model(SavedModel(path.stem, path), task)
    bot = bot_opponent(opponent)
    if bot is not None:
        return bot
    if isinstance(opponent, type):
        raise ConfigError(f"opponent must be an object, got the class {opponent.__name__}")
    if callable(getattr(opponent, "begin", None)):
        return opponent  # type: ignore[no-any-return]
    if callable(getattr(opponent, "predict", None)):
        return _predicting(opponent, task)
    if callable(opponent):
        pair = partial(FunctionPair, opponent, task.action_space)
        return PairOpponent(_name(opponent), pair, agents_of(task))
    raise ConfigError(
        f"opponent must be a function of the observation, an object with predict(), the path of a "
        f"saved model, a SnapshotStore, a Computer, a python-sc2 bot or None, got {opponent!r}"
    )


def _model(model: SavedModel, task: type[TaskDefinition]) -> ModelOpponent:
    model.check_spaces(task.observation_space, task.action_space)
    return ModelOpponent(model, task.action_space)


def _predicting(opponent: Any, task: type[TaskDefinition]) -> Opponent:
    name = _name(opponent)
    check_spaces(
        f"opponent {name}",
        getattr(opponent, "observation_space", None),
        getattr(opponent, "action_space", None),
        task.observation_space,
        task.action_space,
    )
    if hasattr(opponent, "policy_class") and callable(getattr(opponent, "save", None)):
        # An SB3 model holds its env, its buffers and its log, which cannot be pickled.
        content = BytesIO()
        opponent.save(content)
        return _model(SavedModel(name, content.getvalue()), task)
    pair = partial(PredictPair, opponent, task.action_space, deterministic=False)
    return PairOpponent(name, pair, agents_of(task))


def _name(opponent: Any) -> str:
    """The opponent's name in infos and logs."""
    name = getattr(opponent, "__name__", None)
    return name if isinstance(name, str) else type(opponent).__name__
