"""The hyperparameters that are searched, by algorithm.

The ranges are wide around the bundled values, for trainings that are short. Rule: a suggestion is a
section of a file of hyperparameters, so what is best can be written as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import BaseTrial


class Range(tuple[float, float]):
    """From the first to the second number, evenly on a logarithmic scale."""


LEARNING = {
    "learning_rate": Range((1e-5, 1e-2)),
    "gamma": (0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
}
ON_POLICY = {
    **LEARNING,
    "n_steps": (32, 64, 128, 256, 512),
    "gae_lambda": (0.8, 0.9, 0.95, 0.98, 1.0),
}
PROXIMAL = {
    **ON_POLICY,
    "ent_coef": Range((1e-6, 0.1)),
    "minibatches": (2, 4, 8, 16),
    "n_epochs": (3, 5, 10, 20),
    "clip_range": (0.1, 0.2, 0.3),
}
OFF_POLICY = {
    **LEARNING,
    "batch_size": (32, 64, 128, 256),
    "buffer_size": (20_000, 100_000),
    "learning_starts": (0, 500, 1_000),
    "train_freq": (1, 4, 8),
}
VALUE_BASED = {
    **OFF_POLICY,
    "target_update_interval": (100, 1_000, 5_000),
    "exploration_fraction": (0.1, 0.3, 0.5),
    "exploration_final_eps": (0.01, 0.05, 0.1),
}
ACTOR_CRITIC = {**OFF_POLICY, "tau": (0.001, 0.005, 0.02, 0.05)}
NETS = {"small": [64, 64], "medium": [128, 128], "large": [256, 256]}

SPACES: Mapping[str, Mapping[str, Any]] = {
    "ppo": PROXIMAL,
    "maskable-ppo": PROXIMAL,
    "recurrent-ppo": PROXIMAL,
    "a2c": {**ON_POLICY, "n_steps": (5, 8, 16, 32, 64), "ent_coef": Range((1e-6, 0.1))},
    "trpo": {**ON_POLICY, "target_kl": (0.005, 0.01, 0.02, 0.05)},
    "dqn": VALUE_BASED,
    "qrdqn": VALUE_BASED,
    "sac": ACTOR_CRITIC,
    "td3": ACTOR_CRITIC,
    "tqc": ACTOR_CRITIC,
}
"""By the algorithm's name; async-ppo is of real time, where a trial cannot be repeated."""


def suggest(trial: BaseTrial, algo: str, *, n_rows: int, steps: int) -> dict[str, Any]:
    """A section of hyperparameters, complete but for policy and the scale of rewards.

    Args:
        algo: a key of `SPACES`.
        steps: of a trial; it shall have two rollouts or more.
    """
    section: dict[str, Any] = {}
    for name, values in SPACES[algo].items():
        if isinstance(values, Range):
            section[name] = trial.suggest_float(name, *values, log=True)
            continue
        possible = [one for one in values if name != "n_steps" or 2 * one * n_rows <= steps]
        section[name] = trial.suggest_categorical(name, possible or values[:1])
    section["policy_kwargs"] = {"net_arch": NETS[trial.suggest_categorical("net_arch", [*NETS])]}
    return section
