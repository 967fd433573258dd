"""Choices of a training, as data: the algorithm, and how a policy is trained against itself.

The algorithms are a table: where each one is, and which tasks it can learn. `--self-play MODE` is

    shared        both sides of each match are rows of the learner; the default
    latest        the opponent is the newest snapshot of the learner
    uniform       half of the matches against the newest, half against any snapshot
    prioritised   the same, but rather against those that the learner wins less against

Rule: nothing here imports numpy or torch, so that the command's help is printed at once, and a task
that an algorithm cannot learn is refused at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sc2pool.errors import ConfigError
from sc2pool.optional import require

if TYPE_CHECKING:
    from sc2pool.tasks.definition import TaskDefinition

_SB3 = "stable_baselines3"
_CONTRIB = "sb3_contrib"
_ARRAYS = ("Box", "Discrete", "MultiDiscrete", "MultiBinary")
"""The spaces that Stable-Baselines3 supports."""
_ACTOR_CRITIC = ("n_steps", "gae_lambda", "gamma")
_PROXIMAL = (*_ACTOR_CRITIC, "n_epochs", "clip_range")
_PPO_FILE = "ppo.yml"
_REPLAYING = ("buffer_size", "learning_starts", "train_freq", "gamma")


@dataclass(frozen=True)
class Algorithm:
    """One of them."""

    module: str
    """The package that has the class."""
    class_name: str
    attributes: tuple[str, ...]
    """Attributes that its saved models have and most others lack."""
    lacks: tuple[str, ...] = ()
    """Attributes that those others have and its saved models lack."""
    policy_module: str = "stable_baselines3.common.policies"
    """Where the class of a saved model's policy is."""
    optimizers: tuple[str, ...] = ("policy",)
    actions: tuple[str, ...] = _ARRAYS
    """The action spaces that it supports, from its documentation."""
    policy_infix: str = ""
    """`MlpPolicy` becomes `MlpLstmPolicy` with `Lstm`."""
    hyperparameters: str = ""
    """The file in `defaults` that has them; its own defaults if empty."""
    uses_masks: bool = False
    plays_on: bool = False
    """In real time it needs running games while it learns."""

    def load_class(self) -> type[Any]:
        """The class; imports torch."""
        return getattr(import_module(self.module), self.class_name)  # type: ignore[no-any-return]


ALGORITHMS: Final = {
    "ppo": Algorithm(_SB3, "PPO", _PROXIMAL, hyperparameters=_PPO_FILE),
    "a2c": Algorithm(
        _SB3, "A2C", _ACTOR_CRITIC, lacks=("n_epochs", "cg_max_steps"), hyperparameters="a2c.yml"
    ),
    "dqn": Algorithm(
        _SB3,
        "DQN",
        (*_REPLAYING, "exploration_fraction"),
        policy_module="stable_baselines3.dqn.policies",
        actions=("Discrete",),
        hyperparameters="dqn.yml",
    ),
    "sac": Algorithm(
        _SB3,
        "SAC",
        (*_REPLAYING, "target_entropy"),
        policy_module="stable_baselines3.sac.policies",
        optimizers=("actor", "critic"),
        actions=("Box",),
    ),
    "td3": Algorithm(
        _SB3,
        "TD3",
        (*_REPLAYING, "policy_delay"),
        policy_module="stable_baselines3.td3.policies",
        optimizers=("actor", "critic"),
        actions=("Box",),
    ),
    "maskable-ppo": Algorithm(
        _CONTRIB,
        "MaskablePPO",
        _PROXIMAL,
        policy_module="sb3_contrib.common.maskable.policies",
        actions=("Discrete", "MultiDiscrete", "MultiBinary"),
        hyperparameters=_PPO_FILE,
        uses_masks=True,
    ),
    "recurrent-ppo": Algorithm(
        _CONTRIB,
        "RecurrentPPO",
        _PROXIMAL,
        policy_module="sb3_contrib.common.recurrent.policies",
        policy_infix="Lstm",
        hyperparameters=_PPO_FILE,
    ),
    "trpo": Algorithm(_CONTRIB, "TRPO", (*_ACTOR_CRITIC, "cg_max_steps")),
    "qrdqn": Algorithm(
        _CONTRIB,
        "QRDQN",
        (*_REPLAYING, "n_quantiles"),
        policy_module="sb3_contrib.qrdqn.policies",
        actions=("Discrete",),
    ),
    "tqc": Algorithm(
        _CONTRIB,
        "TQC",
        (*_REPLAYING, "top_quantiles_to_drop_per_net"),
        policy_module="sb3_contrib.tqc.policies",
        optimizers=("actor", "critic"),
        actions=("Box",),
    ),
    "async-ppo": Algorithm(
        "sc2pool", "AsyncPPO", _PROXIMAL, hyperparameters=_PPO_FILE, plays_on=True
    ),
}
"""By the name that `--algo` takes."""


def check_algorithm(name: str, task: type[TaskDefinition]) -> None:
    """Check that an algorithm is installed and can learn a task's observations and actions.

    Raises:
        ConfigError: it cannot; says why.
        MissingPackageError: its package is not installed.
    """
    algorithm = ALGORITHMS[name]
    if algorithm.module == _CONTRIB:
        require(f"--algo {name}", algorithm.module)
    space = type(task.action_space).__name__
    if space not in algorithm.actions:
        able = [one for one, other in ALGORITHMS.items() if space in other.actions]
        raise ConfigError(
            f"--algo {name} plays {' and '.join(algorithm.actions)} actions, and those of "
            f"{task.__name__} are {space}: {', '.join(able) or 'none of them'} can"
        )
    start = getattr(task.action_space, "start", None)
    if start is not None and start.any():
        raise ConfigError(
            f"the algorithms count actions from 0, and those of {task.__name__} begin at {start}"
        )
    check_observations(task)
    if algorithm.uses_masks and not hasattr(task, "action_masks"):
        raise ConfigError(
            f"--algo {name} needs a task with action_masks(), and {task.__name__} has none"
        )


def check_observations(task: type[TaskDefinition]) -> None:
    """Raise `ConfigError` for a task with observations that no algorithm takes."""
    space = task.observation_space
    parts = space.values() if isinstance(space, Mapping) else [space]
    wrong = {type(part).__name__ for part in parts}.difference(_ARRAYS)
    if wrong:
        raise ConfigError(
            f"the algorithms take {', '.join(_ARRAYS)} observations and a Dict of them, and those "
            f"of {task.__name__} are {', '.join(sorted(wrong))}"
        )


SHARED: Final = "shared"
MODES: Final = (SHARED, "latest", "uniform", "prioritised")
LATEST_SHARE: Final = 0.5
"""Part of the matches against the newest snapshot: what the learner meets next is like itself, and
the older ones keep it from forgetting how to beat them."""
PARTS: Final = 20
"""Snapshots of a run, if nothing else is asked for."""
EVALUATIONS: Final = 10
LEAST_BETWEEN: Final = 5_000
"""Env steps between two evaluations, whose matches would else take longer than a short training."""
GAMES: Final = 20
"""Of an evaluation, against each opponent."""


def choose_self_play(chosen: str | None, earlier: str | None, task: type[TaskDefinition]) -> str:
    """The mode of a run: as chosen, else the resumed run's; empty for a task of one player.

    Raises:
        ConfigError: it is asked for, and the task has one player.
    """
    if task.players == 2:
        return chosen or earlier or SHARED
    if chosen:
        raise ConfigError(
            f"--self-play {chosen}: it needs a task of two players, and {task.__name__} has "
            f"{task.players}"
        )
    return ""
