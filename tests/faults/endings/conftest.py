"""Fixtures that start training programs, which end in different ways."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sc2pool.pool.machine import sweep
from tests.support.programs import Trainer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture
def start_trainer() -> Iterator[Callable[..., Trainer]]:
    """Starts training programs of this folder, and ends them after the test."""
    with ExitStack() as trainers:
        yield lambda program, *arguments: trainers.enter_context(
            Trainer(HERE / program, *arguments)
        )


@pytest.fixture
def trainer(start_trainer: Callable[..., Trainer], standin_dir: Path) -> Callable[..., Trainer]:
    """Starts a training program."""
    return lambda ending, game=standin_dir: start_trainer("trainer.py", game, ending)


@pytest.fixture
def swept(run_temp: Path) -> Iterator[None]:
    """After the test, deletes the files of killed trainers, as the next pool would."""
    yield
    sweep(run_temp)
