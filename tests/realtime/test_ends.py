"""Ends of games in real time, in every form that was reported of the real game.

Each is a terminated episode with its last real observation: no fault, no truncation, no wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from realtime_duels import CountingBot, TellsLoops
from realtime_tasks import Mortal
from sc2.data import Race
from sc2.player import Bot

from sc2pool.game.hang_detection import SILENCE_S
from sc2pool.protocol.game_time import LOOPS_PER_S
from tests.support.installations import changed

PERIOD_S = Mortal.step_mul / LOOPS_PER_S
MOST_STEPS = 12
"""The end of a match is noticed within two seconds, that is six periods, on a calm machine."""
REFUSED = "the game refused to show its state, as one that is over"
SILENT = "the game did not answer any more and did nothing"
MUTE_GAME = Path(__file__).parent / "programs" / "mute_game.py"


@pytest.fixture(scope="session")
def mute(tempered: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose games fall silent at their end in real time."""

    def run_mute(script: str) -> str:
        return script.replace("-m sc2standin", str(MUTE_GAME))

    return changed(tempered("kind"), tmp_path_factory.mktemp("mute") / "StarCraftII", run_mute)


def play_to_the_end(env: Any) -> tuple[np.ndarray, list[dict[str, Any]], float]:
    """Let the first env's game end; rewards, infos and how long its last step took."""
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
    assert env.stats().recycles == {}
    assert env.stats().untold_ends == refused


@pytest.mark.timing
def test_the_end_is_noticed_within_a_period_and_a_fifth_of_a_second(make_env, tempered):
    env = make_env(task=Mortal, game=tempered("silent-end"))
    _, _, took_s = play_to_the_end(env)
    assert took_s < PERIOD_S + 0.2


@pytest.mark.timing
def test_a_game_that_says_nothing_any_more_is_replaced_after_its_end(make_env, mute):
    env = make_env(task=Mortal, game=mute)
    rewards, infos, took_s = play_to_the_end(env)
    assert rewards[0] == 0.0
    assert infos[0]["sc2pool.untold_end"] == SILENT
    assert took_s < 3 * SILENCE_S + 5.0
    check_nothing_was_wrong(env, infos[0])
    stats = env.stats()
    assert stats.recycles == {"soft-silence": 1}, "planned: it does not count as a failure"
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
    assert (stats.faults, stats.recycles) == (0, {})
    assert (stats.untold_ends, stats.contradictions) == ((0, 1) if temper == "both-win" else (1, 0))
