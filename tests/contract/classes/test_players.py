"""Tasks of several learning players, or of python-sc2's bots: each player is a row of the batch.

`tests/matches` tests matches of bots without a pool; these tests play them in a pool.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.errors import ConfigError
from sc2pool.tasks.marine_duel import MarineDuel
from tests.contract.conftest import without_workers
from tests.matches.duel_bots import ATTACK, WAIT, DuelBot
from tests.support.pools import begun

STEPS = 8
"""The number of steps of each episode."""
SHORT = 8 * STEPS


@pytest.fixture
def matches(vec_task: Callable[..., Any]) -> Callable[..., Any]:
    """Makes matches whose episodes are short."""
    return lambda **keywords: vec_task("MarineDuel", max_loops=SHORT, **keywords)


def actions_at(step: int, n: int) -> np.ndarray:
    """Actions that differ between rows and steps: each player walks or stands still."""
    return 4 + (np.arange(n) + step) % 9


def played(env: Any, steps: int) -> list[Any]:
    """Everything that a `VecEnv` returns: the first observations, then the result of each step."""
    first = env.reset()
    return [first, *(env.step(actions_at(step, env.num_envs)) for step in range(steps))]


@pytest.fixture(scope="module")
def whole(standin_dir: Path) -> list[Any]:
    """An undisturbed run of two matches under seed 5."""
    with closing(
        SubprocSC2VecEnv(task="MarineDuel", n=2, game=standin_dir, seed=5, max_loops=SHORT)
    ) as env:
        return played(env, STEPS)


def test_each_player_is_an_env(matches):
    env = matches(n=2)
    assert (env.num_envs, env.pool.n, env.pool.rows) == (4, 2, 2)
    first, *steps = played(env, 2 * STEPS)
    assert first.shape == (4, *MarineDuel.observation_space.shape)
    for number, (observations, rewards, dones, infos) in enumerate(steps, 1):
        assert observations.shape == first.shape
        np.testing.assert_allclose(rewards[::2], -rewards[1::2], atol=1e-6)
        assert dones.tolist() == [number % STEPS == 0] * 4
        for info, done in zip(infos, dones, strict=True):
            assert ("terminal_observation" in info) == done
            assert info["TimeLimit.truncated"] == done
            assert info.get("sc2pool.result") == ("undecided" if done else None)
    stats = env.stats()
    assert (stats.env_steps, stats.episodes) == (4 * 2 * STEPS, 4)
    assert [len(one.other_games) for one in stats.instances] == [1, 1]


@without_workers
def test_the_agents_of_a_team_are_envs_too(vec_task):
    env = vec_task("3m", n=2)
    assert (env.num_envs, env.pool.rows) == (6, 3)
    env.reset()
    masks = np.stack(env.env_method("action_masks"))
    _, rewards, dones, _ = env.step(masks.argmax(axis=1))
    assert rewards.reshape(2, 3).tolist() == [[reward] * 3 for reward in rewards[::3]]
    assert not dones.any()


@without_workers
def test_attributes_methods_and_masks_are_of_one_player(matches):
    env = matches(n=2)
    env.set_attr("colour", "red", indices=[1, 2])
    env.set_attr("colour", "blue", indices=[0, -1])
    env.reset()
    assert env.get_attr("colour") == ["blue", "red", "red", "blue"]
    assert env.get_attr("facing", [0, 1]) in ([1.0, -1.0], [-1.0, 1.0])
    assert env.get_attr("colour", 2) == ["red"]
    masks = np.stack(env.env_method("action_masks"))
    assert masks.shape == (4, 13)
    assert env.has_attr("facing")


@without_workers
def test_the_options_of_a_match_are_its_first_players(matches):
    env = matches(n=2)
    env.set_options([{"number": row} for row in range(4)])
    env.reset()
    assert [one["number"] for one in env.get_attr("options")] == [0, 0, 2, 2]


def test_a_match_is_paused_once(matches):
    env = begun(matches(n=2))
    env.pause([2, 3])
    env.pause(2)
    assert [one.state for one in env.stats().instances] == ["playing", "paused"]
    env.resume(3)
    assert [one.state for one in env.stats().instances] == ["playing", "paused"]
    env.resume([2, 3])
    assert [one.state for one in env.stats().instances] == ["playing", "playing"]
    env.step(actions_at(0, 4))


@without_workers
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_env_has_a_row_for_each_player(whole, vector_task, mode):
    env = vector_task("MarineDuel", n=2, seed=5, max_loops=SHORT, autoreset_mode=mode)
    assert env.num_envs == 4
    assert env.observation_space.shape == (4, *MarineDuel.observation_space.shape)
    observations, _ = env.reset()
    assert observations.tobytes() == whole[0].tobytes()
    for step in range(STEPS):
        observations, rewards, terminated, truncated, infos = env.step(actions_at(step, 4))
        given, paid, dones, told = whole[1 + step]
        over = step == STEPS - 1
        assert rewards.tobytes() == paid.tobytes()
        assert (truncated.tolist(), terminated.any()) == ([over] * 4, False)
        assert dones.tolist() == [over] * 4
        last = np.stack([info["terminal_observation"] for info in told]) if over else given
        shown = np.stack(list(infos["final_obs"])) if "final_obs" in infos else observations
        assert shown.tobytes() == last.tobytes()
    results = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert list(results["sc2pool.result"]) == ["undecided"] * 4
    if mode is AutoresetMode.DISABLED:
        with pytest.raises(ConfigError, match=r"all of them or none, got True for \[0, 1, 2\]"):
            env.reset(options={"reset_mask": np.array([True, True, True, False])})
        env.reset(options={"reset_mask": np.array([True, True, False, False])})
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"envs \[2, 3\] are over"):
            env.step(actions_at(0, 4))
        env.reset(options={"reset_mask": np.array([False, False, True, True])})
    env.step(actions_at(0, 4))


@without_workers
def test_a_list_of_seeds_has_one_for_each_row(vector_task):
    env = vector_task("MarineDuel", n=2, max_loops=SHORT)
    one, _ = env.reset(seed=[3, None, 4, None])
    other, _ = env.reset(seed=[3, 9, 4, 9])
    assert one.tobytes() == other.tobytes(), "the first row's counts"
    with pytest.raises(ValueError, match="num_envs=4 but got length=2"):
        env.reset(seed=[3, 4])


def test_an_env_of_one_learner_says_what_to_use(standin_dir):
    words = "SC2GymEnv has one learner in each game, but MarineDuel has 2: SubprocSC2VecEnv"
    with pytest.raises(ConfigError, match=words):
        SC2GymEnv("MarineDuel", game=standin_dir)
    with pytest.raises(ConfigError, match="3m has 3"):
        SC2GymEnv("3m", game=standin_dir)
    with pytest.raises(ConfigError, match=words):
        gymnasium.make("sc2pool/MarineDuel-v0", game=standin_dir)


LOOPS = 80
BOT_STEPS = LOOPS // DuelBot.step_mul


def test_both_players_of_a_bot_are_rows(vec_task):
    env = vec_task(DuelBot, max_loops=LOOPS, seed=3)
    assert (env.num_envs, env.pool.rows) == (4, 2)
    assert env.reset()[:, 0].tolist() == [1, 2, 1, 2]
    actions = np.random.default_rng(7).integers(2, size=(2 * BOT_STEPS, 4))
    for number, each in enumerate(actions, 1):
        assert env.step(each)[2].tolist() == [number % BOT_STEPS == 0] * 4
    env.reset()
    for _ in range(3):
        env.step([ATTACK] * 4)
    assert env.reset()[:, 1].tolist() == [225.0] * 4, "the bots were stopped in their turn"
    assert env.stats().matches == {}, "the learner has no opponent"
    assert env.env_method("action_masks", indices=[]) == []
    assert env.get_attr("step_mul") == [8] * 4


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
