"""Matches of python-sc2's bots in a pool: rows, resets, seeds, and what the trainer is told."""

from __future__ import annotations

import numpy as np
import pytest
from sc2.data import Race
from sc2.player import Bot
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.config import Computer
from sc2pool.errors import ConfigError
from sc2pool.pool.statistics.matches import MatchResults
from tests.matches.duel_bots import ATTACK, WAIT, DuelBot, DuelTask, PlainDuelBot

LOOPS = 80
STEPS = LOOPS // DuelBot.step_mul


def run(env: VecEnv, steps: int) -> list[tuple[np.ndarray, ...]]:
    """Observations, rewards and dones of a fixed series of actions."""
    actions = np.random.default_rng(7).integers(2, size=(steps, env.num_envs))
    first = env.reset()
    return [(first,), *(env.step(each)[:3] for each in actions)]


def test_both_players_of_a_bot_are_rows(vec_task):
    env = vec_task(DuelBot, max_loops=LOOPS, seed=3)
    assert (env.num_envs, env.pool.rows) == (4, 2)
    played = run(env, 2 * STEPS)
    assert played[0][0][:, 0].tolist() == [1, 2, 1, 2]
    for number, (_, _, dones) in enumerate(played[1:], 1):
        assert dones.tolist() == [number % STEPS == 0] * 4
    env.reset()
    for _ in range(3):
        env.step([ATTACK] * 4)
    assert env.reset()[:, 1].tolist() == [225.0] * 4, "the bots were stopped in their turn"
    assert env.stats().matches == {}, "the learner has no opponent"
    assert env.env_method("action_masks", indices=[]) == []
    assert env.get_attr("step_mul") == [8] * 4


def test_a_seed_repeats_the_matches_of_bots(vec_task):
    runs = [run(vec_task(DuelBot, max_loops=LOOPS, seed=3), STEPS + 2) for _ in range(2)]
    np.testing.assert_equal(runs[1], runs[0])


@pytest.mark.parametrize("task", [DuelTask, DuelBot])
def test_a_plain_bot_trains_the_learner(vec_task, task):
    """It wins what the learner does not, and the pool counts it."""
    opponent = Bot(Race.Terran, PlainDuelBot(), name="attacker")
    env = vec_task(task, opponent=opponent, step_mul=32, seed=5)
    assert env.num_envs == 2
    env.reset()
    results: list[str] = []
    while len(results) < 4:
        _, _, dones, infos = env.step([WAIT, WAIT])
        for done, info in zip(dones, infos, strict=True):
            assert ("sc2pool.result" in info) == done
            if done:
                assert info["sc2pool.opponent"] == "attacker"
                results.append(info["sc2pool.result"])
    assert set(results) == {"loss"}
    assert env.stats().matches == {"attacker": MatchResults(loss=len(results))}


def test_the_computer_against_a_bot(vec_task):
    env = vec_task(DuelBot, opponent=Computer(), max_loops=16)
    env.reset()
    env.step([WAIT] * 2)
    _, _, dones, infos = env.step([WAIT] * 2)
    assert dones.all()
    assert {info["sc2pool.opponent"] for info in infos} == {"computer-Easy"}
    assert env.stats().matches["computer-Easy"].undecided == 2


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
