"""PPO's hyperparameters, one row per task.

The default suits a small vector observation and 8 games on two cores; a row holds what differs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PPOSettings:
    """Hyperparameters, named as in SB3."""

    default_steps: int = 1_000_000
    """Env steps of a whole training, of all games together."""
    n_steps: int = 128
    """Steps of each game between two updates."""
    minibatches: int = 4
    """Number of equal minibatches in an update's batch, for any number of games."""
    n_epochs: int = 4
    learning_rate: float = 1e-3
    """At the start; it falls linearly to 0."""
    gamma: float = 0.99
    gae_lambda: float = 0.95
    ent_coef: float = 0.01
    clip_range: float = 0.2


DEFAULT = PPOSettings()

BY_TASK: dict[str, PPOSettings] = {
    "MoveToBeacon": PPOSettings(default_steps=150_000),
    "MoveToBeaconBot": PPOSettings(default_steps=150_000),
    "MoveToBeaconImage": PPOSettings(default_steps=400_000, learning_rate=3e-4),
}


def settings_for(task: str) -> PPOSettings:
    """The task's own row, or the default."""
    return BY_TASK.get(task, DEFAULT)
