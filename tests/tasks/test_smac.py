"""SMAC's scenarios on a game: whole battles, what agents are told, and SMAC's own interface."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from sc2pool import StarCraft2Env, TeamTask
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.game import Game
from sc2pool.game.program.installation import Installation
from sc2pool.pool.statistics.matches import MatchResults
from sc2pool.tasks.player import Episode
from sc2pool.tasks.teams.smac.heuristic import EAST
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from sc2pool.tasks.teams.smac.scripted import choose
from sc2pool.tasks.teams.smac.task import smac_task
from sc2pool.tasks.teams.team_task import row_space
from tests.matches.playing import RecordedRows, new_player

LONG = {"25m", "27m_vs_30m", "bane_vs_bane", "2c_vs_64zg"}
"""Scenarios of so many units that a few steps must do."""


def random_actions(masks: Sequence[Sequence[int]], rng: np.random.Generator) -> list[int]:
    return [int(rng.choice(np.flatnonzero(mask))) for mask in masks]


@pytest.fixture(scope="module")
def one_game(game_installation: Installation) -> Iterator[tuple[asyncio.Runner, Game]]:
    """A process of the game, with the loop that its connection belongs to."""
    with asyncio.Runner() as runner:
        launching = Game.launch(game_installation, Limits(), deadline=Deadline.after(90))
        game = runner.run(launching)
        yield runner, game
        game.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_battle_of_each_scenario(name, game_installation, one_game):
    class Told(smac_task(name)):
        shares_state = True

    n, sizes = len(Told.agents), Told.sizes
    assert n == SCENARIOS[name].n_agents
    pair = RecordedRows([lambda seen: choose(seen["observation"], sizes, EAST)] * n)
    max_loops = Told.step_mul * (3 if name in LONG else 20)
    runner, game = one_game
    player = new_player(game_installation.root, Told, max_loops=max_loops)
    player._game = game
    runner.run(player.play(Episode(0, seed=3), pair))
    for transition in (one for row in pair.rows for one in row):
        assert row_space(Told).contains(transition.observation)
        assert np.isfinite(transition.observation["state"]).all()
        assert transition.action_masks.shape == (sizes.n_actions,)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_parts_of_what_an_agent_sees(name, smac):
    env = smac(name)
    parts = env.get_obs_move_feats_size() + env.get_obs_own_feats_size()
    for number, size in (env.get_obs_enemy_feats_size(), env.get_obs_ally_feats_size()):
        parts += number * size
    assert parts == env.get_env_info()["obs_shape"]


def test_smacs_random_agents_loop(smac):
    # The loop of SMAC's smac/examples/random_agents.py, for two battles.
    env = smac("3m", seed=1)
    n_agents = env.get_env_info()["n_agents"]
    rng = np.random.default_rng(1)
    for _ in range(2):
        env.reset()
        with pytest.raises(AssertionError, match="Agent 1 cannot perform action 6"):
            env.step([1, 6, 1])
        terminated, steps = False, 0
        while not terminated:
            assert len(env.get_obs()) == n_agents
            assert env.get_state().shape == (48,)
            actions = [
                int(rng.choice(np.nonzero(env.get_avail_agent_actions(agent))[0]))
                for agent in range(n_agents)
            ]
            reward, terminated, info = env.step(actions)
            assert set(info) == {"battle_won", "dead_allies", "dead_enemies"}
            assert reward >= 0
            steps += 1
        assert steps <= env.episode_limit
        with pytest.raises(ResetNeeded):
            env.step(random_actions(env.get_avail_actions(), rng))
    assert env.get_stats()["battles_game"] == 2


def test_a_battle_that_smacs_scripted_player_wins(smac, tmp_path):
    env = smac("2s3z", seed=2, heuristic_ai=True, replay_dir=str(tmp_path))
    with pytest.raises(ConfigError, match="no replay to save"):
        env.save_replay()
    env.reset()
    total, terminated = 0.0, False
    while not terminated:
        reward, terminated, info = env.step([0] * 5)  # which the living cannot do
        total += reward
    assert info["battle_won"]
    assert info["dead_enemies"] == 5
    assert total == pytest.approx(20)
    assert env.get_stats()["win_rate"] == 1
    file = env.save_replay()
    assert file.parent == tmp_path
    assert file.stat().st_size > 0


def test_the_last_info_of_each_agent_tells_who_has_won(vec):
    env = vec(smac_task("2s3z", Rules(heuristic_ai=True)), seed=2)
    env.reset()
    over = [False]
    while not all(over):
        _, _, over, infos = env.step([0] * 5)
    assert all(info["battle_won"] for info in infos)
    assert [info["sc2pool.result"] for info in infos] == ["win"] * 5
    assert env.stats().matches == {"computer-VeryHard": MatchResults(win=1)}


def test_the_time_limit(smac):
    env = smac("2s_vs_1sc", seed=1, continuing_episode=True)
    env.reset()
    for step in range(1, env.episode_limit + 1):
        reward, terminated, info = env.step([1, 1])
        assert (reward, terminated) == (0, step == env.episode_limit)
        assert env.env._episode_steps == step
    assert info["episode_limit"] is True
    assert env.get_stats()["timeouts"] == 1


def test_a_killed_game_ends_the_battle_and_no_more(smac):
    env = smac("3m", seed=1)
    env.reset()
    env.step([1, 1, 1])
    (instance,) = env._launched().stats().instances
    os.kill(instance.pid, signal.SIGKILL)
    reward, terminated, info = env.step([1, 1, 1])
    assert (reward, terminated) == (0, True)
    assert info["episode_limit"] is True
    assert info["sc2pool.fault"]["kind"]
    assert len(env.get_avail_actions()) == 3
    env.reset()
    assert env.step([1, 1, 1])[1] is False
    assert env.get_stats()["restarts"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map_name": "4m"}, "no scenario '4m'; SMAC has 3m, .*; SMACv2 has terran_5_vs_5"),
        ({"map_name": "3m", "capability_config": {}}, "play on one of 10gen_terran, .*, got '3m'"),
        ({"obs_lastaction": True}, "no option 'obs_lastaction'; SMAC's are move_amount"),
        ({"game_version": "4.6.2"}, "game_version can only be None here, got '4.6.2'"),
        ({"min_attack_range": "2"}, "min_attack_range must be of type float, got '2'"),
        ({"difficulty": 7}, "difficulty must be one of 1, 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_wrong_words(options, message):
    with pytest.raises(ConfigError, match=message):
        StarCraft2Env(**options)


class Two(TeamTask):
    """A team whose agents see what they did."""

    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(3)
    acted: Sequence[int] = (0, 0)

    def act(self, action: Sequence[int]) -> None:
        self.acted = list(action)

    def observe(self) -> Any:
        return np.array(self.acted, np.float32).reshape(2, 1) / 2

    def info(self) -> dict[str, Any]:
        return {"steps": len(self.acted)}


def test_every_agent_gets_its_own_observation_and_the_teams_info(vec):
    env = vec(Two)
    env.reset()
    seen, _, _, infos = env.step(np.array([1, 2]))
    assert seen.tolist() == [[0.5], [1.0]]
    assert [info["steps"] for info in infos] == [2, 2]
    env.set_attr("colour", "red", indices=[1])
    assert env.get_attr("colour") == ["red", "red"]


def test_what_is_set_on_one_agent_is_the_teams_in_later_episodes_too(vec):
    env = vec(Two, step_mul=8)
    env.set_attr("step_mul", 4, indices=[0])
    env.reset()
    assert env.get_attr("step_mul") == [4, 4], "not that of the pool, which row 1 has"


def test_a_map_without_the_units_is_an_error(play):
    class Wrong(smac_task("3m")):
        map_name = "8m"

    with pytest.raises(GameFault, match="has not the units of the scenario '3m'"):
        play(Wrong, lambda _: 1, seeds=[1])
