"""Queries and steps of a pool, for the tests of this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import psutil

from sc2pool import SubprocSC2VecEnv


def step(env: SubprocSC2VecEnv) -> Any:
    return env.step(np.zeros(env.num_envs, np.int64))


def games(env: Any) -> list[psutil.Process]:
    """Games of the envs, and then of the spares."""
    return [psutil.Process(instance.pid) for instance in env.stats().instances]


def states(env: Any) -> list[str]:
    return [instance.state for instance in env.stats().instances]


def play_until_spares_are_held(env: SubprocSC2VecEnv) -> None:
    """From their first observation on."""
    while states(env)[-1] != "held":
        step(env)


def are_stopped(processes: list[psutil.Process]) -> list[bool]:
    return [process.status() == psutil.STATUS_STOPPED for process in processes]
