"""Fixtures for tests of training runs: the options of a run, and a simulated full disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.training.algorithms import Hyperparameters
from sc2pool.cli.training.options import TrainOptions


def options(out: Path, **others: Any) -> TrainOptions:
    given = {"steps": 256, "eval_every": 100, "eval_episodes": 2} | others
    return TrainOptions(out=out, hyperparameters=Hyperparameters(), **given)


@pytest.fixture
def full_disk(limited):
    """A context manager; inside its block, this process cannot make any file longer."""
    return lambda: limited("FSIZE", 0)
