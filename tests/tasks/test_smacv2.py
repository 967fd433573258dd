"""SMACv2's random teams on a game: its own interface, seeds, and rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sc2pool.tasks.teams.smacv2.config import example_config
from sc2pool.tasks.teams.smacv2.task import EXAMPLE_RULES, smacv2_task
from tests.tasks.test_smac import random_actions

EXAMPLE_ARGUMENTS: dict[str, Any] = {
    # What `env_args` of SMACv2's examples have beside the map and the capability config.
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
        env = smac("protoss_10_vs_11", seed=5)
        env.reset()
        rng = np.random.default_rng(2)
        states = [env.get_state().tobytes()]
        for _ in range(6):
            env.step(random_actions(env.get_avail_actions(), rng))
            states.append(env.get_state().tobytes())
        battles.append(states)
    assert battles[0] == battles[1]


def test_rewards_are_scaled_by_the_first_battle(smac, vec):
    env = smac("zerg_5_vs_5", seed=4, heuristic_ai=True)
    # The same battles, each with a scale of its own.
    task = smacv2_task("zerg_5_vs_5", rules=replace(EXAMPLE_RULES, heuristic_ai=True))
    rows = vec(task, seed=4)
    rows.reset()
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
