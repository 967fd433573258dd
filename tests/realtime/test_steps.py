"""Steps in real time: late actions, steps that begin together, `SC2VectorEnv` and `RLBotAI`."""

from __future__ import annotations

import logging
import multiprocessing
import time
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from realtime_bots import RealtimeBot
from realtime_tasks import InFlight, OneIsSlow, Short, TellsLoop, Unstoppable

from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.pool.measures import HeldSpares
from sc2pool.protocol import LOOPS_PER_S
from tests.realtime.conftest import are_stopped, games, play_until_spares_are_held, states, step

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
    assert env.stats().replacements == {}


def test_the_action_in_flight_is_observed(make_env):
    env = make_env(n=1, task=InFlight)
    first = env.reset()
    assert (first["last_action"].tolist(), first["delay_periods"].tolist()) == ([8], [[0.0]])
    time.sleep(2.5 * PERIOD_S)
    seen, _, _, (info,) = env.step(np.array([5]))
    assert seen["last_action"].tolist() == [5]
    assert seen["delay_periods"][0] == np.float32(info["sc2pool.gap_s"] / PERIOD_S)
    assert seen["delay_periods"][0] >= 2.5


PERIOD_LOOPS = 4
ACTIONS = np.zeros(2, np.int64)


def apart_s(env, batches: int = 3) -> float:
    """The smallest difference, over some steps, between the two games' `gap_s`, in seconds."""
    gaps_s = []
    for _ in range(batches):
        infos = env.step(ACTIONS)[3]
        gaps_s.append([info["sc2pool.gap_s"] for info in infos])
    return float(np.abs(np.diff(gaps_s, axis=1)).min())


@pytest.mark.timing
def test_a_game_that_fell_behind_is_waited_for_once_and_not_in_every_step(begun):
    env = begun()
    env.step(ACTIONS)
    env.pause([1])  # a pause of half a period makes this game late
    time.sleep(PERIOD_LOOPS / LOOPS_PER_S / 2)
    env.resume([1])
    env.step(ACTIONS)
    skipped = env.stats().realtime.envs["env 0"].skipped_loops
    assert apart_s(env) > 1 / LOOPS_PER_S, "they are out of step"
    apart = min(apart_s(env) for _ in range(3))
    assert apart < 1 / LOOPS_PER_S
    assert env.stats().realtime.envs["env 0"].skipped_loops > skipped


class InTurn(Short):
    """A task with episodes of two steps in the first env, and of four steps in the second."""

    def on_start(self) -> None:
        super().on_start()
        self.max_loops = 8 * (1 + self.level)


def stopped(env: SC2VectorEnv) -> list[bool]:
    return are_stopped(games(env)[:2])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_paused_and_played_on_in_every_mode(freezing, mode):
    with closing(
        SC2VectorEnv(n=2, task=InTurn, game=freezing, realtime=True, autoreset_mode=mode, spares=1)
    ) as env:
        assert (env.realtime, env.step_mul) == (True, InTurn.step_mul)
        env.set_attr("level", [0, 1])
        env.reset()
        env.pause()
        assert stopped(env) == [True, True]
        env.resume()
        assert stopped(env) == [False, False]
        over = np.zeros(2, np.bool_)
        episodes = 0
        for _ in range(12):
            if mode is AutoresetMode.DISABLED and over.any():
                env.pause()
                env.reset(options={"reset_mask": over})
                over = np.zeros(2, np.bool_)
            _, _, terminated, truncated, infos = env.step(ACTIONS)
            assert "sc2pool.fault" not in infos
            stepped = ~over if mode is AutoresetMode.NEXT_STEP else ~(terminated | truncated)
            if mode is not AutoresetMode.DISABLED and stepped.any():
                assert infos["_sc2pool.gap_s"].tolist() == stepped.tolist()
                assert (infos["sc2pool.gap_s"][stepped] > 0).all()
            over = terminated | truncated
            episodes += int(over.sum())
            if over.all():
                continue
            env.pause()
            playing = ~over if mode is not AutoresetMode.SAME_STEP else np.ones(2, np.bool_)
            assert stopped(env) == playing.tolist()
        assert episodes >= 4
        told = env.stats()
        assert told.replacements == {}
        assert told.realtime.steps >= 12
        env.reset_async()
        with pytest.raises(AlreadyPendingCallError, match="pause"):
            env.pause()
        env.reset_wait()
    with pytest.raises(ClosedEnvironmentError):
        env.pause()


@pytest.mark.timing
@pytest.mark.parametrize("spares", [0, 1])
def test_games_of_a_vector_env_begin_together(freezing, spares):
    with closing(
        SC2VectorEnv(n=2, task=OneIsSlow, game=freezing, realtime=True, spares=spares)
    ) as env:
        for _ in range(2):
            _, began = env.reset()
            infos = env.step(ACTIONS)[4]
            assert infos["sc2pool.gap_s"][0] < 0.5, "it did not play while the other was reset"
            assert infos["loop"][0] - began["loop"][0] < LOOPS_PER_S / 2
        assert spares or env.stats().realtime.spares.held == 0
        assert env.stats().pauses.count == 0


@pytest.mark.timing
def test_a_reset_that_is_late_is_waited_for_again(freezing):
    with closing(SC2VectorEnv(n=2, task=OneIsSlow, game=freezing, realtime=True)) as env:
        env.reset()
        env.reset_async()
        with pytest.raises(multiprocessing.TimeoutError):
            env.reset_wait(timeout=0.2)
        env.reset_wait()
        assert env.step(ACTIONS)[4]["sc2pool.gap_s"][0] < 0.5


BOT_PERIOD_S = RealtimeBot.step_mul / LOOPS_PER_S


def step_bot(env: Any, action: int = 0) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    _, _, dones, (info,) = env.step(np.array([action]))
    return dones, info


def test_it_plays_in_time_and_is_told_when_it_does_not(begun):
    env = begun(n=1, task=RealtimeBot)
    infos = [step_bot(env)[1] for _ in range(3)]
    assert all(info["realtime"] for info in infos)
    loops = [info["loop"] for info in infos]
    late = RealtimeBot.step_mul // 2  # allowed delay of answers on a busy machine
    for before, after in pairwise(loops):
        assert abs(after - before - RealtimeBot.step_mul) <= late
    time.sleep(3.5 * BOT_PERIOD_S)
    _, info = step_bot(env)
    assert info["sc2pool.lost_periods"] >= 3
    assert info["loop"] - loops[-1] >= 3 * RealtimeBot.step_mul
    assert env.stats().realtime.steps == 4


def test_it_is_paused_and_misses_nothing(begun):
    env = begun(n=1, task=RealtimeBot)
    _, before = step_bot(env)
    env.pause()
    time.sleep(1.0)
    dones, after = step_bot(env)
    assert not dones.any()
    assert after["loop"] - before["loop"] <= 3 * RealtimeBot.step_mul
    assert env.stats().pauses.loops == 0


def test_deaths_reach_its_handlers_once_and_the_game_ends_with_the_last(begun):
    env = begun(n=1, task=RealtimeBot)
    step_bot(env)
    dones, info = step_bot(env, RealtimeBot.DIE)
    while not dones.any():  # in real time, a game's end may be visible one step later
        dones, info = step_bot(env)
    assert info["destroyed"] == [info["marine"]]
    assert info["over"] == "Result.Defeat"
    assert "sc2pool.fault" not in info
