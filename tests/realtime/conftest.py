"""Fixtures for pools in real time, whose stopped games continue without a jump in time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.processes.spawn import uninterrupted
from sc2standin.install import install
from tests.support.pools import maker

sys.path.insert(0, str(Path(__file__).parent / "programs"))  # the variable also reaches the workers
from realtime_tasks import TellsLoop

MakeEnv = Callable[..., SubprocSC2VecEnv]


@pytest.fixture(scope="session")
def freezing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose games, after a stop, continue from the moment of the stop."""
    folder: Path = tmp_path_factory.mktemp("freezing") / "StarCraftII"
    install(folder, ("--after-stop", "freeze"))
    return folder


@pytest.fixture
def make_env(freezing: Path) -> Iterator[MakeEnv]:
    """Makes pools in real time, and closes them."""
    with maker(SubprocSC2VecEnv, n=2, task=TellsLoop, game=freezing, realtime=True) as make:
        yield make


@pytest.fixture
def no_thread_is_left() -> Iterator[None]:
    uninterrupted(lambda: None)  # starts a thread that lives as long as the process
    before = set(threading.enumerate())
    yield
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def step(env: SubprocSC2VecEnv) -> Any:
    return env.step(np.zeros(env.num_envs, np.int64))


def games(env: Any) -> list[psutil.Process]:
    """The games of the envs, followed by those of the spares."""
    return [psutil.Process(instance.pid) for instance in env.stats().instances]


def states(env: Any) -> list[str]:
    return [instance.state for instance in env.stats().instances]


def play_until_spares_are_held(env: SubprocSC2VecEnv) -> None:
    """Play until all spares are stopped at their first observation."""
    while states(env)[-1] != "held":
        step(env)


def are_stopped(processes: list[psutil.Process]) -> list[bool]:
    return [process.status() == psutil.STATUS_STOPPED for process in processes]
