"""Limits, undisturbed runs and comparisons for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy

MakeEnv = Callable[..., SubprocSC2VecEnv]

SEED = 7
IMPATIENT = PoolConfig(
    limits=Limits(launch_s=20.0, create_join_s=10.0, reset_s=10.0, step_s=1.0, worker_grace_s=0.5)
)
"""Limits for games that never answer a step; a game that is only slow gets three times as long."""


LENIENT = RestartPolicy(per_env=1000, per_env_window_s=0.5, per_pool_per_env=1000)
"""A policy of many restarts, without growing delays, for pools that are harmed again and again."""


@dataclass
class Recording:
    """The results of `reset` and of each step in a run in which every action is 0."""

    observations: list[Any]
    rewards: list[Any]
    dones: list[Any]


def record(env: SubprocSC2VecEnv, steps: int) -> Recording:
    recording = Recording([env.reset()], [], [])
    for _ in range(steps):
        observations, rewards, dones, _ = step(env, *[0] * env.num_envs)
        recording.observations.append(observations)
        recording.rewards.append(rewards)
        recording.dones.append(dones)
    return recording


def step(env: SubprocSC2VecEnv, *actions: int) -> Any:
    return env.step(np.array(actions))


def processes_of(env: SubprocSC2VecEnv, index: int) -> dict[str, psutil.Process]:
    """The processes of one env: the game and the worker."""
    game = psutil.Process(env.stats().instances[index].pid)
    return {"game": game, "worker": psutil.Process(game.ppid())}


def assert_same_bytes(given: Any, expected: Any) -> None:
    assert given.dtype == expected.dtype
    assert given.tobytes() == expected.tobytes()


def assert_same_run(given: Any, expected: Any) -> None:
    """Compare a run with the beginning of the expected run, which may be longer."""
    for name in ("observations", "rewards", "dones"):
        for one, other in zip(getattr(given, name), getattr(expected, name), strict=False):
            assert_same_bytes(one, other)
    assert 0 < len(given.dones) <= len(expected.dones)


def assert_fault(info: dict[str, Any], kinds: set[str], phase: str, instance: int) -> None:
    fault = info["sc2pool.fault"]
    assert fault["kind"] in kinds
    assert (fault["phase"], fault["instance"]) == (phase, instance)
    assert fault["detail"]
    assert 0.0 < fault["recovery_s"] < 60.0
