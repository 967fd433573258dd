"""PPO's settings, one row per task: data, so that a task's tuning is one line to read and change.

The default suits a small vector observation and 8 games on two cores; a row names what differs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PPOSettings:
    """What PPO is told, in SB3's words where it has them."""

    default_steps: int = 1_000_000
    """Env steps of a whole training, all games together."""
    n_steps: int = 128
    """Steps of each game between two updates."""
    minibatches: int = 4
    """Minibatches an update's batch is cut into; with any number of games they come out equal."""
    n_epochs: int = 4
    learning_rate: float = 1e-3
    """At the start; it falls in a straight line to 0."""
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
