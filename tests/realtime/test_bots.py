"""An `RLBotAI` in real time: python-sc2's own notions of it, and the pool's."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
from realtime_bots import RealtimeBot

from sc2pool.protocol.game_time import LOOPS_PER_S

PERIOD_S = RealtimeBot.step_mul / LOOPS_PER_S


def step(env: Any, action: int = 0) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    _, _, dones, (info,) = env.step(np.array([action]))
    return dones, info


def test_it_plays_in_time_and_is_told_when_it_does_not(begun):
    env = begun(n=1, task=RealtimeBot)
    infos = [step(env)[1] for _ in range(3)]
    assert all(info["realtime"] for info in infos)
    loops = [info["loop"] for info in infos]
    late = RealtimeBot.step_mul // 2  # of a busy machine's answers
    for before, after in pairwise(loops):
        assert abs(after - before - RealtimeBot.step_mul) <= late
    time.sleep(3.5 * PERIOD_S)
    _, info = step(env)
    assert info["sc2pool.lost_periods"] >= 3
    assert info["loop"] - loops[-1] >= 3 * RealtimeBot.step_mul
    assert env.stats().realtime.steps == 4


def test_it_is_paused_and_misses_nothing(begun):
    env = begun(n=1, task=RealtimeBot)
    _, before = step(env)
    env.pause()
    time.sleep(1.0)
    dones, after = step(env)
    assert not dones.any()
    assert after["loop"] - before["loop"] <= 3 * RealtimeBot.step_mul
    assert env.stats().pauses.loops == 0


def test_deaths_reach_its_handlers_once_and_the_game_ends_with_the_last(begun):
    env = begun(n=1, task=RealtimeBot)
    step(env)
    dones, info = step(env, RealtimeBot.DIE)
    while not dones.any():  # in real time the end may be seen one step later
        dones, info = step(env)
    assert info["destroyed"] == [info["marine"]]
    assert info["over"] == "Result.Defeat"
    assert "sc2pool.fault" not in info
