"""Matches of python-sc2's bots in a pool: rows, resets, and what the trainer is told.

`tests/matches` has what a match of bots does; here is what a pool makes of it.
"""

from __future__ import annotations

import numpy as np
import pytest
from sc2.data import Race
from sc2.player import Bot

from sc2pool.errors import ConfigError
from sc2pool.pool.statistics.matches import MatchResults
from tests.matches.duel_bots import ATTACK, WAIT, DuelBot, PlainDuelBot

LOOPS = 80
STEPS = LOOPS // DuelBot.step_mul


def test_both_players_of_a_bot_are_rows(vec_task):
    env = vec_task(DuelBot, max_loops=LOOPS, seed=3)
    assert (env.num_envs, env.pool.rows) == (4, 2)
    assert env.reset()[:, 0].tolist() == [1, 2, 1, 2]
    actions = np.random.default_rng(7).integers(2, size=(2 * STEPS, 4))
    for number, each in enumerate(actions, 1):
        assert env.step(each)[2].tolist() == [number % STEPS == 0] * 4
    env.reset()
    for _ in range(3):
        env.step([ATTACK] * 4)
    assert env.reset()[:, 1].tolist() == [225.0] * 4, "the bots were stopped in their turn"
    assert env.stats().matches == {}, "the learner has no opponent"
    assert env.env_method("action_masks", indices=[]) == []
    assert env.get_attr("step_mul") == [8] * 4


def test_a_plain_bot_trains_the_learner(vec_task):
    """It wins what the learner does not, and the pool counts it."""
    opponent = Bot(Race.Terran, PlainDuelBot(), name="attacker")
    env = vec_task(DuelBot, n=1, opponent=opponent, step_mul=32, seed=5)
    assert env.num_envs == 1
    env.reset()
    results: list[str] = []
    while len(results) < 2:  # the learner has had either side
        _, _, (done,), (info,) = env.step([WAIT])
        assert ("sc2pool.result" in info) == done
        if done:
            assert info["sc2pool.opponent"] == "attacker"
            results.append(info["sc2pool.result"])
    assert results == ["loss"] * 2
    assert env.stats().matches == {"attacker": MatchResults(loss=2)}


def test_rows_with_different_steps_end_the_pool(vec_task):
    env = vec_task(DuelBot, n=1)
    env.set_attr("step_mul", 16, indices=[1])
    with pytest.raises(ConfigError, match=r"env 0.*step_mul must be the same for both"):
        env.reset()
        env.step([WAIT, WAIT])
    env.close()
    env = vec_task(DuelBot, n=1)
    env.set_attr("step_mul", 16)
    env.reset()
    assert env.step([WAIT, WAIT])[1].tolist() == [16.0, 16.0]
