"""SMACv2's random teams on a game: the env classes, SMACv2's own interface, seeds, and faults."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sc2pool import StarCraft2Env
from sc2pool.errors import ConfigError
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
    for _ in range(2):
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
    assert env.get_stats()["battles_game"] == 2


def play(env: StarCraft2Env, steps: int) -> list[bytes]:
    rng = np.random.default_rng(2)
    env.reset()
    states = [env.get_state().tobytes()]
    for _ in range(steps):
        _, terminated, _ = env.step(random_actions(env.get_avail_actions(), rng))
        states.append(env.get_state().tobytes())
        if terminated:
            break
    return states


def test_the_same_seed_draws_the_same_teams_and_another_one_others(smac):
    one, again, other = (play(smac("protoss_10_vs_11", seed=seed), 6) for seed in (5, 5, 6))
    assert one == again
    assert one[0] != other[0]


def test_rewards_are_scaled_by_the_first_battle(smac, vec):
    env = smac("zerg_5_vs_5", seed=4, heuristic_ai=True)
    # The same battles, each with a scale of its own.
    task = smacv2_task("zerg_5_vs_5", rules=replace(EXAMPLE_RULES, heuristic_ai=True))
    rows = vec(task, n=1, seed=4)
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


def test_each_agent_is_a_row(vec):
    env = vec("10gen_terran", n=2, seed=1)
    assert env.num_envs == 20
    seen = env.reset()
    masks = np.stack(env.env_method("action_masks"))
    assert (seen.shape, masks.shape) == ((20, env.observation_space.shape[0]), (20, 16))
    own = seen[:, -3:].reshape(2, 10, 3)
    assert not np.array_equal(own[0], own[1]), "each env draws its own"
    rng = np.random.default_rng(0)
    dones = np.zeros(20, bool)
    before = seen
    while not dones[:10].all():
        masks = np.stack(env.env_method("action_masks"))
        seen, rewards, dones, infos = env.step(random_actions(masks, rng))
        assert len(set(rewards[:10].tolist())) == 1
    assert {"battle_won", "dead_allies", "dead_enemies"} <= set(infos[0])
    assert not np.array_equal(seen[:10, -3:], before[:10, -3:]), "the next battle has new teams"


def test_a_killed_game_ends_the_battle_and_no_more(smac):
    env = smac("terran_5_vs_5", seed=1)
    env.reset()
    env.step([1] * 5)
    (instance,) = env._launched().stats().instances
    os.kill(instance.pid, signal.SIGKILL)
    reward, terminated, info = env.step([1] * 5)
    assert (reward, terminated) == (0, True)
    assert info["sc2pool.fault"]["kind"]
    env.reset()
    assert env.step([1] * 5)[1] is False


def test_a_map_without_the_types_is_an_error(vec):
    class Wrong(smacv2_task("zerg_5_vs_5")):
        map_name = "MoveToBeacon"

    env = vec(Wrong, n=1)
    with pytest.raises(ConfigError, match="does not create the units: Unknown unit type"):
        env.reset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map_name": "terran_9_vs_9"}, "no scenario 'terran_9_vs_9'; SMAC has 3m"),
        ({"map_name": "3m", "capability_config": {}}, "play on one of 10gen_terran, .*, got '3m'"),
        ({"conic_fov": True}, "conic_fov can only be False here, got True"),
        ({"prob_obs_enemy": 0.0}, r"prob_obs_enemy can only be 1\.0 here, got 0\.0"),
        ({"action_mask": False}, "action_mask can only be True here, got False"),
        ({"fully_observable": True}, "fully_observable can only be False here"),
        ({"min_attack_range": "2"}, "min_attack_range must be of type float, got '2'"),
        ({"obs_own_position": True}, "no option 'obs_own_position'"),
    ],
)
def test_wrong_words(options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        StarCraft2Env(**{"map_name": "terran_5_vs_5"} | options)


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
