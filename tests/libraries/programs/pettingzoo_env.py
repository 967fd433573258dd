"""`SC2ParallelEnv` passes PettingZoo's own tests, and works in SuperSuit's wrappers.

`test_libraries.py` runs this file in the environment that has PettingZoo and SuperSuit.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import cloudpickle
import numpy as np
import pytest
import supersuit
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils import parallel_to_aec

from sc2pool import SC2ParallelEnv, Task
from sc2pool.config import PoolConfig, RestartPolicy
from sc2pool.errors import ActionError, ClosedError, ConfigError
from sc2pool.smac import StarCraft2Env
from tests.libraries.programs.killing import kill_a_game

pytestmark = pytest.mark.filterwarnings("error")

Make = Callable[..., SC2ParallelEnv]
EACH = pytest.mark.parametrize("task", ["3m", "MarineDuel", "3m_duel", "terran_5_vs_5"])
"""Tasks with one team, with two players, with two teams, and with one random team."""
OFTEN = PoolConfig(restart=RestartPolicy(per_env=100, per_pool_per_env=100))


@pytest.fixture
def make() -> Iterator[Make]:
    """A fixture that makes an env with the constructor's arguments."""
    with ExitStack() as stack:

        def make_env(task: Any = "3m", **keywords: Any) -> SC2ParallelEnv:
            made = SC2ParallelEnv(task, **keywords)
            stack.callback(made.close)
            return made

        yield make_env


class Killed(SC2ParallelEnv):
    """An env that kills a game in every twentieth step."""

    steps = kills = 0

    def step(self, actions: Any) -> Any:
        self.steps += 1
        if self.steps % 20 == 0:
            self.kills += 1
            kill_a_game()
        return super().step(actions)


def choose(env: SC2ParallelEnv, seen: dict[str, Any]) -> dict[str, Any]:
    """A possible action of each agent."""
    return {
        name: env.action_space(name).sample(mask=seen[name]["action_mask"]) for name in env.agents
    }


@EACH
def test_pettingzoos_api_test(task, make, capsys):
    parallel_api_test(make(task, max_loops=200), num_cycles=60)
    assert "Passed Parallel API test" in capsys.readouterr().out


def test_pettingzoos_api_test_while_games_are_killed():
    with closing(Killed("3m_duel", max_loops=400, config=OFTEN)) as env:
        parallel_api_test(env, num_cycles=60)
        assert env.kills >= 1
        assert env.stats().faults == env.kills


def test_pettingzoos_seed_tests():
    def make_env() -> SC2ParallelEnv:
        return SC2ParallelEnv("terran_5_vs_5", max_loops=160)

    parallel_seed_test(make_env, num_cycles=10)
    seed_test(lambda: parallel_to_aec(make_env()), num_cycles=10)


def test_a_team(make):
    env = make("3m")
    assert env.possible_agents == ["marine_0", "marine_1", "marine_2"]
    assert env.agents == []
    seen, infos = env.reset(seed=3)
    assert env.agents == env.possible_agents
    assert infos == {name: {} for name in env.agents}
    for name in env.agents:
        assert env.observation_space(name).contains(seen[name])
        assert env.observation_space(name) is env.observation_space(name)
    assert env.state_space.contains(env.state())
    state = env.state()
    seen, rewards, terminated, truncated, infos = env.step(choose(env, seen))
    assert list(rewards) == list(terminated) == list(truncated) == list(infos) == env.agents
    assert all(type(value) is float for value in rewards.values())
    assert not np.array_equal(state, env.state())


def test_same_observations_as_smacs_interface(make):
    env = make("2s3z")
    with closing(StarCraft2Env("2s3z", seed=4)) as smac:
        seen, _ = env.reset(seed=4)
        smac.reset()
        for _ in range(5):
            masks = [one["action_mask"].tolist() for one in seen.values()]
            assert masks == smac.get_avail_actions()
            for own, other in zip(seen.values(), smac.get_obs(), strict=True):
                np.testing.assert_array_equal(own["observation"], other)
            np.testing.assert_array_equal(env.state(), smac.get_state())
            actions = choose(env, seen)
            seen, rewards, *_ = env.step(actions)
            reward, *_ = smac.step(list(actions.values()))
            assert set(rewards.values()) == {reward}


def test_a_match(make):
    env = make("MarineDuel")
    assert env.possible_agents == ["player_0", "player_1"]
    seen, _ = env.reset(seed=1)
    assert set(seen) == {"player_0", "player_1"}
    with pytest.raises(NotImplementedError, match="has no state"):
        env.state()


def test_a_match_against_an_opponent_has_one_agent(make):
    env = make("MarineDuel", opponent=lambda observation: 0)
    seen, _ = env.reset(seed=1)
    assert list(seen) == env.agents == ["player_0"]


def test_a_match_of_teams(make):
    env = make("3m_duel")
    marines = [f"marine_{i}" for i in range(3)]
    assert env.possible_agents == [f"player_{i}_{one}" for i in (0, 1) for one in marines]
    seen, _ = env.reset(seed=1)
    for own, other in zip(env.agents[:3], env.agents[3:], strict=True):
        np.testing.assert_array_equal(seen[own]["observation"], seen[other]["observation"])
    assert env.state_space.contains(env.state()), "the first player's"
    _, rewards, *_ = env.step(choose(env, seen))
    assert list(rewards) == env.agents


def test_a_team_against_an_opponent(make):
    def stand_still(observation):
        assert observation.shape == (30,), "without the state that the env keeps"
        return 1

    env = make("3m_duel", opponent=stand_still)
    seen, _ = env.reset(seed=1)
    assert list(seen) == env.agents == [f"player_0_marine_{i}" for i in range(3)]
    env.step(choose(env, seen))


def test_the_end_is_everybodys(make):
    env = make("3m", max_loops=16)
    seen, _ = env.reset()
    seen, _, terminated, truncated, infos = env.step(choose(env, seen))
    assert not any(truncated.values())
    _, _, terminated, truncated, infos = env.step(choose(env, seen))
    assert all(truncated.values())
    assert not any(terminated.values())
    assert infos["marine_0"]["battle_won"] is False
    assert env.agents == []
    with pytest.raises(ResetNeeded):
        env.step({})
    assert env.reset()[0].keys() == set(env.possible_agents)


def test_a_killed_game_truncates_all_and_is_marked(make):
    env = make("3m")
    seen, _ = env.reset(seed=1)
    kill_a_game()
    again, rewards, terminated, truncated, infos = env.step(choose(env, seen))
    assert all(truncated.values())
    assert not any(terminated.values())
    assert set(rewards.values()) == {0.0}
    assert all(
        info["sc2pool.fault"]["kind"] and info["sc2pool.synthetic"] for info in infos.values()
    )
    for name in env.possible_agents:
        assert env.observation_space(name).contains(again[name])
        np.testing.assert_array_equal(again[name]["observation"], seen[name]["observation"])
    env.reset()
    assert env.agents == env.possible_agents


def test_wrong_actions(make):
    env = make("3m")
    with pytest.raises(ResetNeeded):
        env.step({})
    env.reset()
    with pytest.raises(ActionError, match=r"one of each of \['marine_0', .* got \['marine_0'\]"):
        env.step({"marine_0": 1})
    with pytest.raises(ActionError, match=r"must be a dict .* got None"):
        env.step(None)
    with pytest.raises(ActionError):
        env.step({"marine_0": 1, "marine_1": 1, "marine_2": 99})
    env.step({"marine_0": 1, "marine_1": 1, "marine_2": 1})


def test_wrong_words(make):
    with pytest.raises(ConfigError, match="unknown task"):
        make("4m")
    with pytest.raises(ConfigError, match="step_mul must be a whole number"):
        make("3m", step_mul=0)
    with pytest.raises(ConfigError, match="seed must be a whole number of at least 0, got -1"):
        make("3m").reset(seed=-1)


class Directions(Task):
    """A task of one agent whose action consists of two choices, with masks."""

    map_name = "MoveToBeacon"
    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3])

    def act(self, action: Any) -> None:
        pass

    def observe(self) -> Any:
        return np.zeros(1, np.float32)

    def action_masks(self) -> Any:
        return np.array([True, False, True, True, False])


class Grid(Directions):
    """`Directions`, with its two choices as rows of one array."""

    action_space = spaces.MultiDiscrete([[2], [3]])


def listed(mask: Any) -> Any:
    return [listed(one) for one in mask] if isinstance(mask, tuple) else mask.tolist()


@pytest.mark.parametrize(
    ("task", "expected"),
    [(Directions, [[1, 0], [1, 1, 0]]), (Grid, [[[1, 0]], [[1, 1, 0]]])],
)
def test_masks_of_several_choices_are_as_their_space_takes_them(make, task, expected):
    env = make(task)
    seen, _ = env.reset()
    (name,) = env.agents
    assert env.observation_space(name).contains(seen[name])
    mask = seen[name]["action_mask"]
    assert listed(mask) == expected
    assert env.action_space(name).sample(mask=mask).ravel()[0] == 0


def test_no_game_before_the_first_reset_and_none_after_close(make):
    env = make("3m")
    with pytest.raises(ResetNeeded, match="no game is launched"):
        env.stats()
    assert repr(env) == f"SC2ParallelEnv(agents={env.possible_agents}, no game launched)"
    env.close()
    env.reset()
    env.close()
    assert repr(env).startswith("SC2ParallelEnv(task=3m, n=1, ")
    assert repr(env).endswith(", closed=True)")
    with pytest.raises(ClosedError):
        env.reset()


def test_copies_have_games_of_their_own(make):
    env = make("3m", max_loops=80)
    copies = [pickle.loads(cloudpickle.dumps(env)) for _ in range(2)]
    try:
        seen = [one.reset(seed=2)[0] for one in copies]
        np.testing.assert_array_equal(
            seen[0]["marine_0"]["observation"], seen[1]["marine_0"]["observation"]
        )
        pids = {one.stats().instances[0].pid for one in copies}
        assert len(pids) == 2
    finally:
        for one in copies:
            one.close()


def test_supersuits_vector_env(make):
    env = make("3m", max_loops=80)
    vec = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(env), 2)
    try:
        n = 2 * len(env.possible_agents)
        assert vec.num_envs == n
        vec.reset(seed=1)
        over = np.zeros(n, bool)
        for _ in range(12):
            _, rewards, terminated, truncated, _ = vec.step(np.ones(n, np.int64))
            assert rewards.shape == (n,)
            over |= terminated.astype(bool) | truncated.astype(bool)
        assert over.all(), "each episode ended, and the next one began"
    finally:
        for one in vec.vec_envs:
            one.close()


def test_render(make):
    env = make("3m", render_mode="rgb_array", step_mul=16)
    assert env.metadata["render_fps"] == 1.4, "22.4 loops of 16 in a step"
    env.reset()
    assert env.render().shape == (480, 640, 3)
