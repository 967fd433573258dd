"""SMAC's scenarios and SMACv2's random teams on a game, and SMAC's and SMACv2's own interfaces."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from s2clientprotocol import common_pb2

from sc2pool import TeamTask
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ActionError, ConfigError, GameFault
from sc2pool.game.game import Game
from sc2pool.game.match import Match
from sc2pool.game.program.installation import Installation
from sc2pool.pool.measures import MatchResults
from sc2pool.smac import StarCraft2Env, UnitType, own_scenario
from sc2pool.tasks.player import Episode
from sc2pool.tasks.task import row_space
from sc2pool.tasks.teams.battle_task import smac_task
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules
from sc2pool.tasks.teams.scripted import EAST, choose
from sc2pool.tasks.teams.smacv2 import EXAMPLE_RULES, example_config, smacv2_task
from tests.matches.playing import RecordedRows, new_player
from tests.support.pools import begun

LONG = {"25m", "27m_vs_30m", "bane_vs_bane", "2c_vs_64zg"}
"""Scenarios with many units, of which the test plays only a few steps."""
TERRAN = {"marauder": 2, "marine": 7, "medivac": 1}


OWN = own_scenario("MMM", 9, allies=TERRAN, enemies=TERRAN)
"""A scenario on a map of the user's own; here it is the stand-in's map of MMM."""


def random_actions(masks: Sequence[Sequence[int]], rng: np.random.Generator) -> list[int]:
    return [int(rng.choice(np.flatnonzero(mask))) for mask in masks]


@pytest.fixture(scope="module")
def one_game(game_installation: Installation) -> Iterator[tuple[asyncio.Runner, Game]]:
    """A process of the game, and the event loop to which its connection belongs."""
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
    player._match = Match([game])
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
    # The test plays two battles with the loop of SMAC's smac/examples/random_agents.py.
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
        reward, terminated, info = env.step([0] * 5)  # only dead agents may choose action 0
        total += reward
    assert info["battle_won"]
    assert info["dead_enemies"] == 5
    assert total == pytest.approx(20)
    assert env.get_stats()["win_rate"] == 1
    file = env.save_replay()
    assert file.parent == tmp_path
    assert file.stat().st_size > 0


def test_the_last_info_of_each_agent_tells_who_has_won(vec):
    env = begun(vec(smac_task("2s3z", Rules(heuristic_ai=True)), seed=2))
    over = [False]
    while not all(over):
        _, _, over, infos = env.step([0] * 5)
    assert all(info["battle_won"] for info in infos)
    assert [info["sc2pool.result"] for info in infos] == ["win"] * 5
    assert env.stats().matches == {"computer-VeryHard": MatchResults(win=1)}


def test_the_time_limit(smac):
    env = begun(smac("2s_vs_1sc", seed=1, continuing_episode=True))
    for step in range(1, env.episode_limit + 1):
        reward, terminated, info = env.step([1, 1])
        assert (reward, terminated) == (0, step == env.episode_limit)
        assert env.env._episode_steps == step
    assert info["episode_limit"] is True
    assert env.get_stats()["timeouts"] == 1


def test_options_of_smac_without_effect_take_any_value(smac):
    smac(
        "3m",
        game_version="latest",
        debug=True,
        window_size_x=1920,
        window_size_y=1200,
        kill_unit_step_mul=4,
        num_fov_actions=6,
    ).close()


def test_an_action_of_one_element_is_taken_in_any_shape(smac):
    env = begun(smac("3m", seed=1))
    moves = [2, 3, 4]
    column = np.array(moves)[:, np.newaxis]
    for actions in (column, column.tolist(), list(column), column.astype(np.float32)):
        env.step(actions)
        state = env.get_state()
        last_actions = state[-3 * env.n_actions :].reshape(3, env.n_actions)
        assert last_actions.argmax(axis=1).tolist() == moves


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.ones((3, 9)), r"agent 0: an action must be one number, got an array of shape \(9,\)"),
        ([1, [1, 2], 1], r"agent 1: an action must be one number, got \[1, 2\]"),
        ([1, 1, None], "agent 2: an action must be one number, got None"),
        ([1, 1, np.nan], "agent 2: an action must be one number, got nan"),
        (np.ones((1, 3)), "expected 3 actions, one per agent, got 1"),
        (1, "expected 3 actions, one per agent, got 1"),
    ],
)
def test_what_is_not_an_action_for_each_agent_is_an_action_error(actions, message, smac):
    env = smac("3m")
    with pytest.raises(ActionError, match=message):
        env.step(actions)


def test_a_scenario_of_the_users_own_map(smac, vec):
    env = smac(OWN, seed=1)
    named = smac("MMM", seed=1)
    assert (env.map_name, env.episode_limit) == ("MMM", 9)
    assert env.n_actions_no_attack + 10 == env.n_actions
    for name in ("n_actions_move", "unit_type_bits", "shield_bits_ally", "shield_bits_enemy"):
        assert getattr(env, name) == getattr(named, name), name
    for one in (env, named):
        one.reset()
    np.testing.assert_array_equal(env.get_state(), named.get_state())
    ended = [env.step([1] * 10)[1] for _ in range(9)]
    assert ended == [False] * 8 + [True]
    rows = vec(smac_task(OWN))
    assert rows.num_envs == 10


@pytest.mark.parametrize("map_name", ["3m", "terran_5_vs_5", OWN])
def test_an_episode_limit_of_the_users_own(map_name, smac):
    env = smac(map_name, seed=1, episode_limit=3)
    assert env.get_env_info()["episode_limit"] == 3
    env.reset()
    ended = [env.step([1] * env.n_agents)[1] for _ in range(3)]
    assert ended == [False, False, True]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"allies": {"scv": 3}}, "allies: a type must be a UnitType or one of marine, .*'scv'"),
        ({"enemies": {}}, "enemies must be a dict from types to numbers of units, got {}"),
        ({"enemies": {"marine": 0}}, r"enemies\['marine'\] must be a whole number of at least 1"),
        ({"allies": {"marine": 1, "zealot": 1}}, "allies must be of one race, got marine, zealot"),
        ({"limit": 0.5}, "limit must be a whole number of at least 1, got 0.5"),
        ({"map_name": None}, "map_name must be the name or path of a map, got None"),
    ],
)
def test_a_wrong_scenario_is_a_config_error(numbers, message):
    given = {"map_name": "mine", "limit": 60, "allies": TERRAN, "enemies": TERRAN} | numbers
    with pytest.raises(ConfigError, match=message):
        own_scenario(**given)


def test_a_scenario_may_have_types_of_the_users_own():
    ghost = UnitType("ghost", 50, common_pb2.Terran)
    task = smac_task(own_scenario("a/mine.SC2Map", 60, allies={ghost: 2}, enemies=TERRAN))
    assert task.agents == ("ghost_0", "ghost_1")
    assert (task.__name__, task.map_name) == ("mine", "a/mine.SC2Map")
    assert task.sizes.scenario.n_types == 3, "the enemy has more types"


def test_a_killed_game_ends_the_battle_and_no_more(smac):
    env = begun(smac("3m", seed=1))
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
        ({"game_version": "4.6.2"}, "game_version can only be None or 'latest' here, got '4.6.2'"),
        ({"conic_fov": True}, "conic_fov can only be False here, got True"),
        ({"map_name": OWN, "capability_config": {}}, "of your own has no capability_config"),
        ({"episode_limit": 0}, "episode_limit must be a whole number of at least 1, got 0"),
        ({"min_attack_range": "2"}, "min_attack_range must be of type float, got '2'"),
        ({"difficulty": 7}, "difficulty must be one of 1, 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_wrong_words(options, message):
    with pytest.raises(ConfigError, match=message):
        StarCraft2Env(**options)


class Two(TeamTask):
    """A team whose agents observe their last actions."""

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


def test_an_agent_has_its_own_observation_but_the_teams_info_and_attributes(vec):
    env = vec(Two, step_mul=8)
    env.set_attr("step_mul", 4, indices=[0])
    env.reset()
    seen, _, _, infos = env.step(np.array([1, 2]))
    assert seen.tolist() == [[0.5], [1.0]]
    assert [info["steps"] for info in infos] == [2, 2]
    env.set_attr("colour", "red", indices=[1])
    assert env.get_attr("colour") == ["red", "red"]
    assert env.get_attr("step_mul") == [4, 4], "not that of the pool, which row 1 has"


def test_a_map_without_the_units_is_an_error(play):
    class Wrong(smac_task("3m")):
        map_name = "8m"

    with pytest.raises(GameFault, match="has not the units of the scenario '3m'"):
        play(Wrong, lambda _: 1, seeds=[1])


EXAMPLE_ARGUMENTS: dict[str, Any] = {
    # `env_args` in SMACv2's examples has these arguments besides the map and the capability config.
    **{"continuing_episode": False, "difficulty": "7", "game_version": None, "move_amount": 2},
    **{"obs_all_health": True, "obs_instead_of_state": False, "obs_last_action": False},
    **{"obs_own_health": True, "obs_pathing_grid": False, "obs_terrain_height": False},
    **{"obs_timestep_number": False, "reward_death_value": 10, "reward_defeat": 0},
    **{"reward_negative_scale": 0.5, "reward_only_positive": True, "reward_scale": True},
    **{"reward_scale_rate": 20, "reward_sparse": False, "reward_win": 200},
    **{"replay_dir": "", "replay_prefix": "", "conic_fov": False, "obs_own_pos": True},
    **{"use_unit_ranges": True, "min_attack_range": 2, "num_fov_actions": 12},
    **{"state_last_action": True, "state_timestep_number": False, "step_mul": 8},
    **{"heuristic_ai": False, "debug": False, "prob_obs_enemy": 1.0, "action_mask": True},
}


@pytest.mark.parametrize("map_name", ["10gen_terran", "10gen_protoss", "10gen_zerg"])
def test_smacv2s_loop_with_the_arguments_of_its_examples(smac, map_name):
    config = example_config(map_name, 5, 5)
    env = smac(map_name, capability_config=config, seed=1, **EXAMPLE_ARGUMENTS)
    info = env.get_env_info()
    rng = np.random.default_rng(1)
    env.reset()
    teams = env.get_capabilities().reshape(5, info["cap_shape"])
    assert (teams.sum(axis=1) == 1).all()
    assert np.array_equal(env.get_capabilities_agent(4), teams[4])
    terminated, steps = False, 0
    while not terminated:
        seen, state = env.get_obs(), env.get_state()
        assert len(seen[0]) == len(env.get_obs_feature_names()) == info["obs_shape"]
        assert len(state) == len(env.get_state_feature_names()) == info["state_shape"]
        masks = [env.get_avail_agent_actions(agent) for agent in range(info["n_agents"])]
        reward, terminated, told = env.step(random_actions(masks, rng))
        assert set(told) == {"battle_won", "dead_allies", "dead_enemies"}
        assert reward >= 0
        steps += 1
    assert steps <= env.episode_limit == 200
    assert env.get_stats()["battles_game"] == 1


def test_the_same_seed_is_the_same_battle(smac):
    battles = []
    for _ in range(2):
        env = begun(smac("protoss_10_vs_11", seed=5))
        rng = np.random.default_rng(2)
        states = [env.get_state().tobytes()]
        for _ in range(6):
            env.step(random_actions(env.get_avail_actions(), rng))
            states.append(env.get_state().tobytes())
        battles.append(states)
    assert battles[0] == battles[1]


def test_rewards_are_scaled_by_the_first_battle(smac, vec):
    env = smac("zerg_5_vs_5", seed=4, heuristic_ai=True)
    # Each of these battles has its own scale of rewards.
    task = smacv2_task("zerg_5_vs_5", rules=replace(EXAMPLE_RULES, heuristic_ai=True))
    rows = begun(vec(task, seed=4))
    ratios = []
    for _ in range(3):
        env.reset()
        terminated, pairs = False, []
        while not terminated:
            reward, terminated, _ = env.step([0] * 5)
            _, rewards, dones, _ = rows.step([0] * 5)
            pairs.append((reward, rewards[0]))
            assert dones[0] == terminated
        ratios.append({round(mine / own, 4) for mine, own in pairs if own})
    assert ratios[0] == {1.0}, "the first battle's is its own"
    assert all(len(one) == 1 for one in ratios)
    assert len(set.union(*ratios)) > 1, "other teams have other best returns"


def test_medivacs_heal(smac):
    config = example_config("10gen_terran", 6, 2)
    config["team_gen"] |= {"unit_types": ["marine", "medivac"], "weights": [0.5, 0.5]}
    env = smac("10gen_terran", capability_config=config, seed=3, heuristic_ai=True)
    assert env.get_total_actions() == 6 + 6
    env.reset()
    healed, terminated = False, False
    own_health = env.get_obs_feature_names().index("own_health")
    health = np.ones(6)
    while not (healed or terminated):
        _, terminated, _ = env.step([0] * 6)
        now = np.stack(env.get_obs())[:, own_health]
        healed |= bool(((now > health) & (health > 0)).any())
        health = now
    assert healed
