"""What is searched are arguments that the algorithms have."""

from __future__ import annotations

from typing import Any

import optuna
import pytest

from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.cli.training.hyperparameters import Hyperparameters
from sc2pool.cli.training.model import check_arguments
from sc2pool.cli.tune import SPACES, suggest


@pytest.mark.parametrize("algo", SPACES)
def test_every_suggestion_is_a_section(algo: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(20):
        section: dict[str, Any] = suggest(study.ask(), algo, n_rows=8, steps=5000)
        check_arguments(algo, Hyperparameters.of(section, "the search"))
        assert section.get("n_steps", 0) * 8 * 2 <= 5000
        assert 1e-5 <= section["learning_rate"] <= 1e-2


def test_a_short_trial_has_the_shortest_rollout() -> None:
    section = suggest(optuna.create_study().ask(), "ppo", n_rows=64, steps=100)
    assert section["n_steps"] == 32


def test_all_algorithms_but_that_of_real_time() -> None:
    assert ALGORITHMS.keys() - SPACES.keys() == {"async-ppo"}
