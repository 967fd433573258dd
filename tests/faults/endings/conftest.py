"""Training programs that end in every way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from sc2pool.pool.machine.run_dir import sweep

sys.path.insert(0, str(Path(__file__).parent))
from trainers import TRAINER, TRAINER_OF_ENVS, Trainer


@pytest.fixture
def start_trainer() -> Iterator[Callable[..., Trainer]]:
    """Starts training programs, and ends them."""
    with ExitStack() as trainers:

        def start(program: Path, *arguments: str | Path) -> Trainer:
            started = Trainer(program, *arguments)
            trainers.callback(started.end)
            return started

        yield start


@pytest.fixture
def trainer(start_trainer: Callable[..., Trainer], standin_dir: Path) -> Callable[..., Trainer]:
    """Starts a training program."""

    def start(ending: str, n: int = 2, game: Path = standin_dir) -> Trainer:
        return start_trainer(TRAINER, game, ending, str(n))

    return start


@pytest.fixture
def trainer_of_envs(start_trainer: Callable[..., Trainer]) -> Callable[[str], Trainer]:
    """Starts a training program whose envs are the user's."""
    return partial(start_trainer, TRAINER_OF_ENVS)


@pytest.fixture
def swept(run_temp: Path) -> Iterator[None]:
    """What a killed trainer leaves behind is swept by the next pool; here, after the test."""
    yield
    sweep(run_temp)
