"""Games that are played together are due together, whatever has put them out of step."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sc2pool.protocol.game_time import LOOPS_PER_S

PERIOD_LOOPS = 4
ACTIONS = np.zeros(2, np.int64)


def apart_s(env, batches: int = 3) -> float:
    """By how much one of two games was early at least, in so many steps."""
    gaps_s = []
    for _ in range(batches):
        infos = env.step(ACTIONS)[3]
        gaps_s.append([info["sc2pool.gap_s"] for info in infos])
    return float(np.abs(np.diff(gaps_s, axis=1)).min())


@pytest.mark.timing
def test_a_game_that_fell_behind_is_waited_for_once_and_not_in_every_step(begun):
    env = begun()
    env.step(ACTIONS)
    env.pause([1])  # half a period: from now on it is the later one
    time.sleep(PERIOD_LOOPS / LOOPS_PER_S / 2)
    env.resume([1])
    env.step(ACTIONS)
    skipped = env.stats().realtime.envs["env 0"].skipped_loops
    assert apart_s(env) > 1 / LOOPS_PER_S, "they are out of step"
    apart = min(apart_s(env) for _ in range(3))
    assert apart < 1 / LOOPS_PER_S
    assert env.stats().realtime.envs["env 0"].skipped_loops > skipped
