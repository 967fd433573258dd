"""SMAC's scenarios on a game: whole battles, what agents are told, and SMAC's own interface."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from sc2pool import StarCraft2Env, TeamTask
from sc2pool.errors import ConfigError, ObservationError, UserCodeError
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from sc2pool.tasks.teams.smac.task import smac_task

LONG = {"25m", "27m_vs_30m", "bane_vs_bane", "2c_vs_64zg"}
"""Scenarios of so many units that a few steps must do."""


def random_actions(masks: Sequence[Sequence[int]], rng: np.random.Generator) -> list[int]:
    return [int(rng.choice(np.flatnonzero(mask))) for mask in masks]


def attack_first(masks: Sequence[Sequence[int]]) -> list[int]:
    """Every agent attacks the first enemy it can; otherwise it walks east, where they are."""
    chosen = []
    for mask in masks:
        able = np.flatnonzero(mask)
        target = able[able >= 6]
        chosen.append(int(target[0]) if target.size else 4 if mask[4] else int(able[0]))
    return chosen


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_battle_of_each_scenario(name, smac):
    env = smac(name, seed=3)
    rng = np.random.default_rng(0)
    seen, state = env.reset()
    info = env.get_env_info()
    task = smac_task(name)
    for _ in range(3 if name in LONG else 20):
        assert all(task.observation_space.contains(one) for one in seen)
        assert (len(seen), seen[0].shape) == (info["n_agents"], (info["obs_shape"],))
        assert state.shape == (info["state_shape"],)
        assert np.isfinite(state).all()
        parts = env.get_obs_move_feats_size() + env.get_obs_own_feats_size()
        for number, size in (env.get_obs_enemy_feats_size(), env.get_obs_ally_feats_size()):
            parts += number * size
        assert parts == info["obs_shape"]
        masks = env.get_avail_actions()
        assert np.shape(masks) == (info["n_agents"], info["n_actions"])
        _, terminated, _ = env.step(random_actions(masks, rng))
        seen, state = env.get_obs(), env.get_state()
        if terminated:
            break


def test_smacs_random_agents_loop(smac):
    # The loop of SMAC's smac/examples/random_agents.py, for two battles.
    env = smac("3m", seed=1)
    n_agents = env.get_env_info()["n_agents"]
    rng = np.random.default_rng(1)
    for _ in range(2):
        env.reset()
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


def test_a_won_battle(smac, tmp_path):
    env = smac("3m", seed=1, replay_dir=str(tmp_path), reward_only_positive=True)
    with pytest.raises(ConfigError, match="no replay to save"):
        env.save_replay()
    env.reset()
    total, terminated = 0.0, False
    while not terminated:
        reward, terminated, info = env.step(attack_first(env.get_avail_actions()))
        total += reward
    stats = env.get_stats()
    assert stats["win_rate"] == info["battle_won"]
    assert total <= 20 + 1e-6
    file = env.save_replay()
    assert file.parent == tmp_path
    assert file.stat().st_size > 0
    if info["battle_won"]:
        assert info["dead_enemies"] == 3
        assert total == pytest.approx(20)


def test_the_time_limit(smac):
    env = smac("2s_vs_1sc", seed=1, continuing_episode=True)
    env.reset()
    for step in range(1, env.episode_limit + 1):
        reward, terminated, info = env.step([1, 1])
        assert (reward, terminated) == (0, step == env.episode_limit)
        assert env.env._episode_steps == step
    assert info["episode_limit"] is True
    assert env.get_stats()["timeouts"] == 1


def test_unavailable_action_is_an_assertion_error(smac):
    env = smac("3m")
    env.reset()
    with pytest.raises(AssertionError, match="Agent 1 cannot perform action 6"):
        env.step([1, 6, 1])


def test_the_same_seed_is_the_same_battle(smac):
    battles = []
    for _ in range(2):
        env = smac("2s3z", seed=5)
        env.reset()
        rng = np.random.default_rng(2)
        played = []
        for _ in range(15):
            reward, _, _ = env.step(random_actions(env.get_avail_actions(), rng))
            played.append((reward, env.get_state().tobytes()))
        battles.append(played)
    assert battles[0] == battles[1]


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
        ({"map_name": "4m"}, "no scenario '4m'"),
        ({"obs_lastaction": True}, "no option 'obs_lastaction'; SMAC's are move_amount"),
        ({"game_version": "4.6.2"}, "game_version can only be None"),
        ({"debug": True}, "debug can only be False"),
        ({"difficulty": 7}, "difficulty must be one of 1, 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_wrong_words(options, message):
    with pytest.raises(ConfigError, match=message):
        StarCraft2Env(**options)


def test_keywords_that_ask_for_nothing(smac):
    """PyMARL's settings name them."""
    env = smac("3m", seed=1, game_version=None, debug=False)
    env.reset()
    assert env.step([1, 1, 1])[1] is False


@pytest.mark.parametrize("rest", [False, True])
def test_smacs_scripted_player_acts_whatever_the_actions(smac, rest):
    env = smac("2s3z", seed=2, heuristic_ai=True, heuristic_rest=rest)  # it wins this battle
    env.reset()
    total, terminated = 0.0, False
    while not terminated:
        reward, terminated, info = env.step([0] * 5)  # which the living cannot do
        total += reward
    assert info["battle_won"]
    assert total == pytest.approx(20)


def test_each_agent_is_a_row(vec):
    env = vec("3m", n=2, seed=1)
    assert env.num_envs == 6
    seen = env.reset()
    masks = np.stack(env.env_method("action_masks"))
    assert (seen.shape, masks.shape) == ((6, 30), (6, 9))
    _, rewards, dones, _ = env.step(np.ones(6, np.int64))
    assert (rewards == 0).all()
    assert not dones.any()
    states = env.env_method("state")
    assert np.array_equal(states[0], states[2]), "rows of one env share the task"


class Two(TeamTask):
    """A team whose hooks return what the test sets."""

    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def act(self, action: Sequence[int]) -> None:
        self.acted = list(action)

    def observe(self) -> Any:
        return self.seen()

    def seen(self) -> Any:
        acted = getattr(self, "acted", [0, 0])
        return np.array(acted, np.float32).reshape(2, 1) / 2

    def info(self) -> dict[str, Any]:
        return {"steps": len(getattr(self, "acted", []))}


class TooFew(Two):
    def seen(self) -> Any:
        return np.zeros((3, 1), np.float32)


class TooFewMasks(Two):
    def action_masks(self) -> Any:
        return [np.ones(3, np.bool_)]


def test_every_agent_gets_its_own_observation_and_the_teams_info(vec):
    env = vec(Two, n=1)
    env.reset()
    seen, _, _, infos = env.step(np.array([1, 2]))
    assert seen.tolist() == [[0.5], [1.0]]
    assert [info["steps"] for info in infos] == [2, 2]
    env.set_attr("colour", "red", indices=[1])
    assert env.get_attr("colour") == ["red", "red"]


def test_what_is_set_on_one_agent_is_the_teams_in_later_episodes_too(vec):
    env = vec(Two, n=1, step_mul=8)
    env.set_attr("step_mul", 4, indices=[0])
    env.reset()
    assert env.get_attr("step_mul") == [4, 4], "not that of the pool, which row 1 has"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TooFew, r"observe\(\) of a team must return one for each of its 2 agents, got 3"),
        (TooFewMasks, r"action_masks\(\) of a team must return one .* 2 agents, got 1"),
    ],
)
def test_as_many_as_agents(task, message, vec):
    env = vec(task, n=1)
    with pytest.raises((ObservationError, UserCodeError), match=message):
        env.reset()


def test_a_map_without_the_units_is_an_error(vec, game_installation):
    class Wrong(smac_task("3m")):
        map_name = "8m"

    env = vec(Wrong, n=1)
    with pytest.raises(ConfigError, match="has not the units of the scenario '3m'"):
        env.reset()


def test_replays_of_a_team_are_kept(vec, tmp_path: Path):
    from sc2pool import PoolConfig, ReplayPolicy

    env = vec("3m", n=1, max_loops=16, config=PoolConfig(replays=ReplayPolicy(tmp_path, every=1)))
    env.reset()
    env.step(np.ones(3, np.int64))
    _, _, dones, infos = env.step(np.ones(3, np.int64))
    assert dones.all()
    assert Path(infos[0]["sc2pool.replay"]).stat().st_size > 0
