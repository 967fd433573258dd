"""Late actions are measured one by one, and spares miss nothing while they wait."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest
from realtime_pools import games, play_until_spares_are_held, states, step
from realtime_tasks import InFlight, OneIsSlow, Short, TellsLoop, Unstoppable

from sc2pool import SubprocSC2VecEnv
from sc2pool.pool.statistics.lateness import HeldSpares
from sc2pool.protocol.game_time import LOOPS_PER_S

PERIOD_S = TellsLoop.step_mul / LOOPS_PER_S


def play_to_the_end(env: SubprocSC2VecEnv) -> None:
    while not step(env)[2].any():
        pass


def test_a_late_action_is_told_in_its_info_and_counted(begun):
    env = begun(n=2)
    infos = [*step(env)[3], *step(env)[3]]
    time.sleep(3.5 * PERIOD_S)
    late = step(env)[3]
    infos += late
    for info in late:
        assert info["sc2pool.gap_s"] >= 3.5 * PERIOD_S
        assert info["sc2pool.lost_periods"] >= 3
        assert info["sc2pool.skipped_loops"] >= 2 * TellsLoop.step_mul
    told = env.stats().realtime
    assert told.steps == len(infos) == 6
    assert told.gap_s.max == max(info["sc2pool.gap_s"] for info in infos)
    for name in ("lost_periods", "skipped_loops"):
        assert getattr(told, name) == sum(info[f"sc2pool.{name}"] for info in infos)
    assert told.misses == sum(info["sc2pool.lost_periods"] > 0 for info in infos) >= 2
    assert list(told.envs) == ["env 0", "env 1"]
    assert sum(one.lost_periods for one in told.envs.values()) == told.lost_periods


def test_a_spare_misses_nothing_while_it_waits(begun):
    env = begun(n=1, spares=1, task=Short)
    play_until_spares_are_held(env)
    held = games(env)[-1]
    before = env.stats().realtime.spares
    time.sleep(1.0)
    play_to_the_end(env)
    assert games(env)[0] == held
    loops = [info["loop"] for info in [env.reset_infos[0], *step(env)[3]]]
    assert loops[1] - loops[0] <= 2 * Short.step_mul
    spares = env.stats().realtime.spares
    assert spares == HeldSpares(before.held + 1, loops=0, problem="")
    assert env.stats().pauses.count == 0, "nobody has called for it"


def test_loops_that_a_spare_missed_are_counted(begun, standin_dir):
    env = begun(n=1, spares=1, task=Short, game=standin_dir)
    play_until_spares_are_held(env)
    before = env.stats().realtime.spares
    time.sleep(1.0)
    play_to_the_end(env)
    spares = env.stats().realtime.spares
    assert spares.held == before.held + 1
    assert spares.loops >= before.loops + 22
    (info,) = step(env)[3]
    assert info["sc2pool.skipped_loops"] >= 22


def test_where_games_cannot_be_held_there_are_no_spares(begun, caplog):
    class Briefly(Unstoppable):
        max_loops = 8

    with caplog.at_level(logging.WARNING, "sc2pool"):
        env = begun(n=1, spares=1, task=Briefly, seed=5)
        episodes = [env.stats().instances[0].episode]
        while states(env)[-1] != "closed" or len(episodes) < 4:
            if step(env)[2].any():
                episodes.append(env.stats().instances[0].episode)
    assert episodes == list(range(len(episodes))), "none is lost with the spare"
    assert "may not be stopped" in env.stats().realtime.spares.problem
    said = [record.message for record in caplog.records if "no spares" in record.message]
    assert len(said) == 1
    assert env.stats().recycles == {}


def test_the_action_in_flight_is_observed(make_env):
    env = make_env(n=1, task=InFlight)
    first = env.reset()
    assert (first["last_action"].tolist(), first["delay_periods"].tolist()) == ([8], [[0.0]])
    time.sleep(2.5 * PERIOD_S)
    seen, _, _, (info,) = env.step(np.array([5]))
    assert seen["last_action"].tolist() == [5]
    assert seen["delay_periods"][0] == np.float32(info["sc2pool.gap_s"] / PERIOD_S)
    assert seen["delay_periods"][0] >= 2.5


@pytest.mark.timing
def test_games_begin_together(make_env):
    env = make_env(n=2, task=OneIsSlow)
    for _ in range(2):
        env.reset()
        first, _ = step(env)[3]
        assert first["sc2pool.gap_s"] < 0.5, "it did not play while the other was reset"
        assert first["loop"] - env.reset_infos[0]["loop"] < LOOPS_PER_S / 2
    assert env.stats().realtime.spares.held == 0
    assert env.stats().pauses.count == 0
