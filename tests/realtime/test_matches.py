"""Matches in real time, and each reported way in which a real game ends.

Both sides of a match keep up with their games, and are paused together. When a game ends, its
episode is terminated with the last real observation, without a fault, truncation or wait.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from realtime_bots import CountingBot, TellsLoops, TellsLoopsBot, decide
from realtime_tasks import Mortal
from sc2.data import Race
from sc2.player import Bot

from sc2pool.config import Limits, PoolConfig
from sc2pool.errors import UserCodeError
from sc2pool.game.hang_detection import SILENCE_S
from sc2pool.protocol import LOOPS_PER_S
from tests.support.installations import changed

PERIOD_S = TellsLoops.step_mul / LOOPS_PER_S
ALIGNED_WITHIN_STEPS = 20
"""The maximum number of steps after a delay until a match's games begin their periods together."""
IMPATIENT = PoolConfig(limits=Limits(step_s=1.5))
TASKS = pytest.mark.parametrize("task", [TellsLoops, TellsLoopsBot])


def step(env: Any, action: int | list[int] = 0) -> tuple[Any, list[dict[str, Any]]]:
    _, _, dones, infos = env.step(np.full(env.num_envs, action))
    return dones, infos


def pids(env: Any) -> list[int]:
    instance = env.stats().instances[0]
    return [instance.pid, instance.other_games[0]["pid"]]


@pytest.mark.timing
@TASKS
def test_both_rows_play_in_time(begun, task):
    env = begun(n=1, task=task)
    loops = []
    began_s = time.monotonic()
    for _ in range(6):
        _, infos = step(env)
        loops.append([info["loop"] for info in infos])
    assert time.monotonic() - began_s >= 5 * PERIOD_S
    late = TellsLoops.step_mul // 2  # allowed delay of answers on a busy machine
    for before, after in pairwise(loops):
        for one, other in zip(before, after, strict=True):
            assert abs(other - one - TellsLoops.step_mul) <= late
    time.sleep(3.5 * PERIOD_S)
    _, infos = step(env)
    for info, before in zip(infos, loops[-1], strict=True):
        assert info["sc2pool.lost_periods"] >= 3
        assert info["loop"] - before >= 3 * TellsLoops.step_mul
        assert info["delay_s"] >= 3 * PERIOD_S


@pytest.mark.timing
@TASKS
def test_an_opponent_has_its_turns_while_the_learner_computes(begun, task):
    env = begun(n=1, task=task, opponent=decide)
    step(env)
    before = step(env)[1][0]["turns"]
    time.sleep(6 * PERIOD_S)
    after = step(env)[1][0]["turns"]
    assert after - before >= 5
    for _ in range(3):
        assert env.reset()[0, 0] <= TellsLoops.step_mul, "its turns end with the episode"
        step(env)
        time.sleep(1.5 * PERIOD_S)
    assert env.stats().faults == 0


@pytest.mark.timing
def test_a_plain_bot_follows_its_game(begun):
    opponent = Bot(Race.Terran, CountingBot(), name="counts")
    env = begun(n=1, task=TellsLoops, opponent=opponent, max_loops=60)
    dones = np.zeros(1, bool)
    while not dones.any():
        time.sleep(PERIOD_S)
        dones, infos = step(env)
    info = infos[0]
    assert info["sc2pool.opponent"] == "counts"
    assert info["sc2pool.result"] == "undecided"
    seen = info["loops_of_turns"]
    assert len(seen) >= 8, "a turn in each four loops"
    assert all(before < after for before, after in pairwise(seen))
    assert not step(env)[0].any(), "the next episode goes on"
    assert env.stats().matches["counts"].undecided == 1


@pytest.mark.timing
@pytest.mark.parametrize("opponent", [None, decide, CountingBot])
def test_both_games_are_paused_and_go_on_together(begun, opponent):
    env = begun(n=1, task=TellsLoops, opponent=opponent, config=IMPATIENT)
    for _ in range(2):
        _, infos = step(env)
    before = infos[0]["loop"]
    time.sleep(1.5 * PERIOD_S)  # so that the opponent is in the middle of a period
    env.pause()
    assert [psutil.Process(pid).status() for pid in pids(env)] == [psutil.STATUS_STOPPED] * 2
    time.sleep(3.5)  # longer than the limits for a stopped game and for a reply
    dones, infos = step(env)
    assert not dones.any()
    for info in infos:
        assert "sc2pool.fault" not in info
        assert info["loop"] - before <= 5 * TellsLoops.step_mul
    assert env.stats().pauses.count == 1
    assert env.stats().pauses.loops <= TellsLoops.step_mul
    if opponent is not None:
        turns = infos[0]["turns"]
        time.sleep(3 * PERIOD_S)
        assert step(env)[1][0]["turns"] >= turns + 2, "the opponent goes on, too"
    env.pause()
    env.reset()
    assert not step(env)[0].any(), "a reset ends the pause"


@pytest.mark.timing
@pytest.mark.parametrize("opponent", [None, decide, CountingBot])
def test_games_that_catch_up_do_so_together(begun, standin_dir, opponent):
    env = begun(n=1, task=TellsLoops, opponent=opponent, game=standin_dir)
    _, before = step(env)
    env.pause()
    time.sleep(1.0)
    env.resume()
    for _ in range(ALIGNED_WITHIN_STEPS):
        _, infos = step(env)
        loops = [info["loop"] for info in infos]
        assert min(loops) - before[0]["loop"] >= LOOPS_PER_S - TellsLoops.step_mul
        if max(loops) - min(loops) < TellsLoops.step_mul / 2:
            return
    pytest.fail("their periods do not begin together")


@pytest.mark.timing
@pytest.mark.parametrize("opponent", [None, decide, CountingBot])
def test_spares_are_held_at_their_first_observation(begun, opponent):
    """No game of a spare match may continue before the learner plays the spare."""
    env = begun(n=1, task=TellsLoops, opponent=opponent, spares=1, max_loops=24)
    for _ in range(2):
        dones = np.zeros(1, bool)
        while not dones.any():
            time.sleep(1.0)  # longer than an episode
            before_s = time.monotonic()  # this step resumes the spare
            first, _, dones, infos = env.step(np.zeros(env.num_envs, int))
        _, infos = step(env)
        # Allowed loops on a busy machine: during this step, and before the spare was stopped.
        late_loops = (time.monotonic() - before_s) * LOOPS_PER_S + TellsLoops.step_mul
        for info, (loop,) in zip(infos, first, strict=True):
            assert "sc2pool.fault" not in info
            assert info["loop"] - loop < TellsLoops.step_mul + late_loops
    assert env.stats().realtime.spares.held >= 2


@pytest.mark.parametrize("opponent", [None, decide, CountingBot])
def test_a_match_ends_for_both(make_env, opponent):
    env = make_env(n=1, task=TellsLoops, opponent=opponent)
    for _ in range(2):
        env.reset()
        # Only one side dies, because two deaths may come a loop apart, and then one side wins.
        dones, infos = step(env, [TellsLoops.DIE, 0][: env.num_envs])
        while not dones.any():
            dones, infos = step(env)
        results = [info["sc2pool.result"] for info in infos]
        assert results == ["loss", "win"][: env.num_envs]
        assert not any("sc2pool.fault" in info for info in infos)


@pytest.mark.parametrize(("opponent", "side"), [(None, 0), (decide, 1), (CountingBot, 1)])
def test_a_killed_side_is_replaced(begun, opponent, side):
    env = begun(n=1, task=TellsLoops, opponent=opponent)
    step(env)
    os.kill(pids(env)[side], signal.SIGKILL)
    dones, infos = step(env)
    assert dones.all()
    for info in infos:
        assert info["sc2pool.fault"]["kind"] == "game-exited"
        assert info["sc2pool.fault"]["detail"].startswith(("host: ", "guest: ")[side])
    assert not step(env)[0].any()


class Failing(CountingBot):
    async def on_step(self, iteration: int) -> None:
        if iteration == 4:
            raise LookupError("no such tactic")


def test_an_opponents_error_between_steps_is_user_code(begun):
    env = begun(n=1, task=TellsLoops, opponent=Failing)
    with pytest.raises(UserCodeError, match=r"(?s)no such tactic.*the opponent 'Failing' raised"):
        for _ in range(5):
            step(env)
            time.sleep(2 * PERIOD_S)
    assert psutil.Process().children(recursive=True) == []


SHORT_PERIOD_S = Mortal.step_mul / LOOPS_PER_S
MOST_STEPS = 12
"""The pool must notice the end of a match within two seconds (six periods) on a calm machine."""
REFUSED = "the game refused to show its state, as one that is over"
SILENT = "the game did not answer any more and did nothing"
MUTE_GAME = Path(__file__).parent / "programs" / "mute_game.py"


@pytest.fixture(scope="session")
def mute(tempered: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fixture: an installation whose games in real time stop answering when they end."""
    return changed(
        tempered("kind"),
        tmp_path_factory.mktemp("mute") / "StarCraftII",
        lambda script: script.replace("-m sc2standin", str(MUTE_GAME)),
    )


def play_to_the_end(env: Any) -> tuple[np.ndarray, list[dict[str, Any]], float]:
    """Play until env 0's game ends. Returns the rewards, infos and duration of the last step."""
    env.reset()
    idle = np.zeros(env.num_envs, np.int64)
    for _ in range(3):
        assert not env.step(idle)[2].any()
    dies = idle.copy()
    dies[0] = Mortal.DIE
    began_s = time.monotonic()
    _, rewards, dones, infos = env.step(dies)
    took_s = time.monotonic() - began_s
    assert dones.tolist() == [True, False]
    return rewards, infos, took_s


def check_nothing_was_wrong(env: Any, info: dict[str, Any]) -> None:
    assert not info["TimeLimit.truncated"]
    assert "sc2pool.fault" not in info
    assert info["terminal_observation"] is not None
    idle = np.zeros(env.num_envs, np.int64)
    assert not any(env.step(idle)[2].any() for _ in range(3))
    assert env.stats().faults == 0


@pytest.mark.parametrize("temper", ["kind", "silent-end", "stub-end", "not-in-game"])
def test_an_end_costs_no_time_and_loses_no_reward_that_was_told(make_env, tempered, temper):
    env = make_env(task=Mortal, game=tempered(temper))
    rewards, infos, _ = play_to_the_end(env)
    refused = temper == "not-in-game"
    shown = temper in ("kind", "silent-end")
    assert rewards[0] == (Mortal.LAST_SCORE if shown else 0.0), "the last state that was shown"
    assert infos[0].get("sc2pool.untold_end") == (REFUSED if refused else None)
    assert infos[0].get("sc2pool.result") == ("undecided" if refused else None)
    check_nothing_was_wrong(env, infos[0])
    assert env.stats().replacements == {}
    assert env.stats().untold_ends == refused


@pytest.mark.timing
def test_the_end_is_noticed_within_a_period_and_a_fifth_of_a_second(make_env, tempered):
    env = make_env(task=Mortal, game=tempered("silent-end"))
    _, _, took_s = play_to_the_end(env)
    assert took_s < SHORT_PERIOD_S + 0.2


@pytest.mark.timing
def test_a_game_that_says_nothing_any_more_is_replaced_after_its_end(make_env, mute):
    env = make_env(task=Mortal, game=mute)
    rewards, infos, took_s = play_to_the_end(env)
    assert rewards[0] == 0.0
    assert infos[0]["sc2pool.untold_end"] == SILENT
    assert took_s < 3 * SILENCE_S + 5.0
    check_nothing_was_wrong(env, infos[0])
    stats = env.stats()
    assert stats.replacements == {"soft-silence": 1}, "planned: it does not count as a failure"
    assert stats.untold_ends == 1


@pytest.mark.parametrize("temper", ["untold-end", "untold-end:still", "both-win"])
@pytest.mark.parametrize("opponent", [None, Bot(Race.Terran, CountingBot())], ids=["self", "bot"])
def test_a_match_whose_end_is_not_told(make_env, tempered, temper, opponent):
    env = make_env(n=1, task=TellsLoops, game=tempered(temper), opponent=opponent)
    env.reset()
    rows = env.num_envs
    action = np.full(rows, 0)
    action[0] = TellsLoops.DIE
    for _ in range(MOST_STEPS):
        _, _, dones, infos = env.step(action)
        action = np.full(rows, 0)
        if dones.any():
            break
    assert dones.all()
    for info in infos:
        assert not info["TimeLimit.truncated"]
        assert "sc2pool.fault" not in info
        assert info["sc2pool.result"] == "undecided"
        assert ("sc2pool.untold_end" in info) == (temper != "both-win")
        assert ("sc2pool.contradiction" in info) == (temper == "both-win")
    assert not env.step(np.full(rows, 0))[2].any()
    stats = env.stats()
    assert (stats.faults, stats.replacements) == (0, {})
    assert (stats.untold_ends, stats.contradictions) == ((0, 1) if temper == "both-win" else (1, 0))
