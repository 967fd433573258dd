"""Plays an `AuditTask` pool and records every step.

In `for records in in_sync(env)` the first records are the `Began` of a reset, and all later records
are the `Sent` and `Received` of a step. No two actions are equal, so the checksum in an observation
identifies the observation's action.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sc2pool import SubprocSC2VecEnv
from tests.support.audit.audited.task import NUMBERS
from tests.support.audit.checker import Record, Sent
from tests.support.audit.recording import from_batch, from_reset, from_step

Harms = Callable[[Sequence[int]], Sequence[int]]
"""Returns the harm of each given env's next action, as an index in `task.HARMS`."""


def no_harm(envs: Sequence[int]) -> Sequence[int]:
    """No harm to any env."""
    return [0] * len(envs)


def in_sync(env: VecEnv, harms: Harms = no_harm) -> Iterator[list[Record]]:
    """Step all envs together, like Stable-Baselines3."""
    numbers = itertools.count()
    envs = range(env.num_envs)
    yield list(from_reset(env.reset(), env.reset_infos))
    while True:
        sent, actions = next_actions(envs, numbers, harms)
        yield [*sent, *from_step(env.step(actions), env.reset_infos)]


def first_ready(env: SubprocSC2VecEnv, harms: Harms = no_harm) -> Iterator[list[Record]]:
    """Step half of the envs at a time: those envs that are ready first."""
    numbers = itertools.count()
    pool = env.pool
    envs: Sequence[int] = range(pool.n)
    yield list(from_reset(env.reset(), env.reset_infos))
    while True:
        sent, actions = next_actions(pool.rows_of(envs), numbers, harms)
        pool.send(actions, envs)
        batch = pool.recv(min_ready=max(1, pool.n // 2))
        envs = batch.envs.tolist()
        yield [*sent, *from_batch(batch, pool.rows)]


def next_actions(
    envs: Sequence[int], numbers: Iterator[int], harms: Harms
) -> tuple[list[Sent], NDArray[np.int64]]:
    """An action for each of these envs, in the checker's form and in the pool's form."""
    sent = [Sent(env, next(numbers) % NUMBERS) for env in envs]
    return sent, np.array([[one.number for one in sent], harms(envs)], np.int64).T
