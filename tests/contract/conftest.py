"""Makers of pools, which are closed at the end of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sc2pool import SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv

without_workers = pytest.mark.parametrize("serial", [True], ids=["serial"])
"""A mark: the test needs no workers. `test_serial.py` shows that workers play the same games."""


@pytest.fixture
def serial() -> bool:
    """Whether the pools of the test are serial ones."""
    return False


@pytest.fixture
def pools() -> Iterator[ExitStack]:
    """Closes the pools of the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def vec(pools: ExitStack, serial: bool) -> Callable[..., SubprocSC2VecEnv]:
    """Makes a `SubprocSC2VecEnv` of functions that make envs, or of a task."""

    def make(*env_fns: Callable[[], Any], **keywords: Any) -> SubprocSC2VecEnv:
        made = SubprocSC2VecEnv(list(env_fns) or None, serial=serial, **keywords)
        pools.callback(made.close)
        return made

    return make


@pytest.fixture
def vec_task(vec: Callable[..., SubprocSC2VecEnv], standin_dir: Path) -> Callable[..., Any]:
    """Makes a `SubprocSC2VecEnv` of a task on the stand-in, by default with two games."""

    def make(task: Any = "MoveToBeacon", n: int = 2, **keywords: Any) -> SubprocSC2VecEnv:
        return vec(task=task, n=n, game=standin_dir, **keywords)

    return make


@pytest.fixture
def vector(pools: ExitStack, serial: bool) -> Callable[..., SC2VectorEnv]:
    """Makes an `SC2VectorEnv` of functions that make envs, or of a task."""

    def make(*env_fns: Callable[[], Any], **keywords: Any) -> SC2VectorEnv:
        made = SC2VectorEnv(list(env_fns) or None, serial=serial, **keywords)
        pools.callback(made.close, terminate=True)
        return made

    return make


@pytest.fixture
def vector_task(vector: Callable[..., SC2VectorEnv], standin_dir: Path) -> Callable[..., Any]:
    """Makes an `SC2VectorEnv` of a task on the stand-in, by default with two games."""

    def make(task: Any = "MoveToBeacon", n: int = 2, **keywords: Any) -> SC2VectorEnv:
        return vector(task=task, n=n, game=standin_dir, **keywords)

    return make


@pytest.fixture
def gym_env(pools: ExitStack, standin_dir: Path, serial: bool) -> Callable[..., SC2GymEnv]:
    """Makes an `SC2GymEnv` on the stand-in."""

    def make(task: Any = "MoveToBeacon", **keywords: Any) -> SC2GymEnv:
        env = SC2GymEnv(task, game=standin_dir, serial=serial, **keywords)
        pools.callback(env.close)
        return env

    return make
