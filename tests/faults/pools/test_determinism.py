"""A seeded run is the same twice, byte for byte, and no fault of one env shows in another's."""

from __future__ import annotations

import numpy as np
from fault_pools import SEED, MakeEnv, assert_same_bytes, processes_of, record
from fault_tasks import Short, ShortSaboteur, strike

N = 3
STEPS = 12
"""Episodes last five steps, so every env plays three episodes."""


def test_a_seeded_run_twice(make_env: MakeEnv) -> None:
    runs = []
    for _ in range(2):
        env = make_env(n=N, task=Short)
        runs.append(record(env, STEPS))
        env.close()
    first, second = runs
    assert sum(dones.sum() for dones in first.dones) == 2 * N
    for name in ("observations", "rewards", "dones"):
        for given, expected in zip(getattr(first, name), getattr(second, name), strict=True):
            assert_same_bytes(given, expected)


def test_a_second_reset_under_the_same_seed_is_the_same_run(make_env: MakeEnv) -> None:
    env = make_env(n=2, task=Short)
    first = record(env, STEPS)
    env.seed(SEED)
    second = record(env, STEPS)
    for given, expected in zip(second.observations, first.observations, strict=True):
        assert_same_bytes(given, expected)


def test_a_killed_game_changes_nothing_for_the_others(make_env: MakeEnv) -> None:
    """Up to the end of their episodes: from then on the episodes come in another order."""
    env = make_env(n=N, task=ShortSaboteur)
    whole = record(env, 4)
    env.seed(SEED)
    observations = env.reset()
    assert_same_bytes(observations, whole.observations[0])
    for number in range(4):
        if number == 2:
            strike(processes_of(env, 1)["game"].pid, "KILL")
        observations, rewards, dones, _ = env.step(np.zeros(N, np.int64))
        assert dones.tolist() == [False, number == 2, False]
        for other in (0, 2):
            assert_same_bytes(observations[other], whole.observations[number + 1][other])
            assert rewards[other] == whole.rewards[number][other]
