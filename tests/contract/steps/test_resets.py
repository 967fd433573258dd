"""Clause 5 of the contract: seeds and options apply to the next reset only."""

from __future__ import annotations

import sys
from dataclasses import make_dataclass
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError, UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Sampling
from tests.support.pools import begun


def keywords(made) -> list[dict]:
    return [info["keywords"] for info in made.reset_infos]


@without_workers
def test_seed_and_options_are_passed_once(vec):
    made = vec(Counting, Counting)
    assert made.seed(7) == [7, 8]
    made.set_options({"level": 1})
    made.reset()
    assert keywords(made) == [
        {"seed": 7, "options": {"level": 1}},
        {"seed": 8, "options": {"level": 1}},
    ]
    made.reset()
    assert keywords(made) == [{}, {}]


def test_options_may_hold_objects_of_the_training_script(vec, monkeypatch):
    """The objects' class is sent with them, because a worker does not import the script."""
    level_class = make_dataclass("Level", ["number"])
    level_class.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "Level", level_class, raising=False)
    made = vec(Counting, Counting)
    made.set_options({"level": level_class(3)})
    made.reset()
    assert [each["options"]["level"].number for each in keywords(made)] == [3, 3]


class FailsInWorker:
    """An object that can be pickled, but not unpickled."""

    def __deepcopy__(self, _: object) -> FailsInWorker:
        return self

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("no number",)


def test_options_that_cannot_be_unpickled_are_the_users_error(vec):
    made = vec(Counting, Counting)
    made.set_options({"level": FailsInWorker()})
    with pytest.raises(
        UserCodeError, match=r"env [01]: .* raised while resetting: ValueError: .*'no number'"
    ):
        made.reset()


@without_workers
def test_each_env_may_have_options_of_its_own(vec):
    made = vec(Counting, Counting)
    made.set_options([{"level": 1}, {}])
    made.reset()
    assert keywords(made) == [{"options": {"level": 1}}, {}]
    made.set_options({"level": 2})
    made.set_options()
    made.reset()
    assert keywords(made) == [{}, {}]


@without_workers
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([{}, "level"], "options must be a dict, got 'level'"),
        ([{}], "one for each of the 2 envs, got 1 of them"),
        (7, "options must be a dict, got 7"),
    ],
    ids=repr,
)
def test_wrong_options_are_told_at_once_and_change_nothing(vec, options, error):
    made = vec(Counting, Counting)
    made.set_options({"level": 1})
    with pytest.raises(ConfigError, match=error):
        made.set_options(options)
    made.reset()
    assert keywords(made) == [{"options": {"level": 1}}] * 2


@without_workers
def test_options_of_one_env_that_are_no_dict_cost_no_game(gym_env):
    made = gym_env()
    with pytest.raises(ConfigError, match="options must be a dict, got 'level'"):
        made.reset(options="level")
    made.reset()
    assert made.stats().replacements == {}


@without_workers
def test_the_autoreset_within_a_step_has_neither(vec):
    made = begun(vec(partial(Counting, 1)))
    made.seed(7)
    made.set_options({"level": 1})
    made.step([0])
    assert keywords(made) == [{}]
    made.reset()
    assert keywords(made) == [{"seed": 7, "options": {"level": 1}}]


@without_workers
def test_the_seed_of_the_constructor_is_that_of_the_first_reset(vec):
    made = begun(vec(Counting, Counting, seed=np.int64(3)))
    assert keywords(made) == [{"seed": 3}, {"seed": 4}]


@without_workers
def test_envs_seeded_with_none_differ(vec):
    made = vec(*[partial(Sampling, spaces.Box(0, 1, (2,)))] * 3)
    seeds = made.seed()
    assert len(set(seeds)) == 3
    observations = made.reset()
    rewards = made.step(np.zeros((3, 2)))[1]
    assert len(set(map(tuple, observations))) == 3
    assert len(set(rewards)) == 3


@without_workers
def test_the_same_seed_gives_the_same_run(vec):
    made = vec(*[partial(Sampling, spaces.Box(0, 1, (2,)))] * 2)
    runs = []
    for _ in range(2):
        made.seed(3)
        runs.append([made.reset(), *(made.step(np.zeros((2, 2)))[:2] for _ in range(3))])
    np.testing.assert_equal(runs[0], runs[1])


@without_workers
class TestTasks:
    """A task's seed is for the whole run: it decides all later episodes, not only the first."""

    def test_neighbouring_seeds_have_no_episode_in_common(self, vec_task, vector_task, gym_env):
        def first_episodes(made, reset) -> list[int]:
            reset()
            return [episode.seed for episode in made.pool.call(range(2), "get_attr", "episode")]

        sb3, vector, single = vec_task(), vector_task(), gym_env()
        runs = []
        for seed in (11, 12):
            sb3.seed(seed)
            runs.append(first_episodes(sb3, sb3.reset))
            assert first_episodes(vector, lambda seed=seed: vector.reset(seed=seed)) == runs[-1]
            single.reset(seed=seed)
            assert single.pool.call([0], "get_attr", "episode")[0].seed == runs[-1][0]
        assert len({*runs[0], *runs[1]}) == 4

    def test_options_are_the_tasks_until_its_episode_is_over(self, vec_task):
        made = vec_task()
        made.set_attr("max_loops", 16)
        made.set_options([{"level": 1}, {}])
        made.reset()
        assert made.get_attr("options") == [{"level": 1}, {}]
        made.step([0, 0])
        assert made.get_attr("options") == [{"level": 1}, {}]
        made.step([0, 0])
        assert made.get_attr("options") == [{}, {}]


@without_workers
@pytest.mark.parametrize("seed", [-1, 0.5, "1"], ids=repr)
def test_a_wrong_seed_is_told_at_once_and_changes_nothing(vec, seed):
    made = vec(Counting)
    made.seed(5)
    with pytest.raises(ConfigError, match="seed must be a whole number"):
        made.seed(seed)
    made.reset()
    assert keywords(made) == [{"seed": 5}]
