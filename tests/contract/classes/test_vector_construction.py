"""`SC2VectorEnv`: how it is made, its spaces, and its seeds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from sc2pool import SC2VectorEnv
from sc2pool.errors import ConfigError
from tests.contract.conftest import without_workers
from tests.contract.envs import Answering, Counting, Sampling, Words

NESTED = spaces.Dict(
    z=spaces.Box(0, 1, (2,)),
    a=spaces.Tuple([spaces.Discrete(3), spaces.Dict(image=spaces.Box(0, 255, (4, 4), np.uint8))]),
)
SPACES = {
    "discrete": spaces.Discrete(4, start=2),
    "box": spaces.Box(-1, 1, (3,), np.float16),
    "nested": NESTED,
    "text in dict": spaces.Dict(word=spaces.Text(4), place=spaces.Box(0, 1, (2,))),
    "sequence": spaces.Sequence(spaces.Discrete(3)),
    "graph": spaces.Graph(spaces.Box(0, 1, (2,)), spaces.Discrete(2)),
    "one of": spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1, (1,))]),
}


@without_workers
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_spaces_are_batched_as_gymnasium_does(vector, space):
    made = vector(*[partial(Sampling, space)] * 2)
    assert isinstance(made, VectorEnv)
    assert (made.num_envs, made.render_mode, made.closed) == (2, None, False)
    assert made.single_observation_space == made.single_action_space == space
    assert made.observation_space == made.action_space == batch_space(space, 2)
    assert made.reset(seed=1)[0] in made.observation_space
    for _ in range(2):
        actions = made.action_space.sample()
        assert made.step(actions)[0] in made.observation_space
        assert all(action in space for action in made.get_attr("last_action"))


def test_a_custom_space_travels_where_shared_memory_is_not_asked_for(vector):
    make = partial(Sampling, Words(), spaces.Discrete(2))
    with pytest.raises(ValueError, match=r"custom space.*shared_memory=False"):
        vector(make)
    made = vector(make, make, shared_memory=False)
    assert made.reset()[0] == ("word", "word")
    assert isinstance(made.observation_space, spaces.Tuple)


def boxes(*highs, shape=(2,)):
    return [partial(Sampling, spaces.Box(0, high, shape), spaces.Discrete(2)) for high in highs]


@without_workers
def test_spaces_that_differ_only_in_their_bounds(vector):
    with pytest.raises(RuntimeError, match=r"not equivalent.*Env 1 has.*observation_mode='differ"):
        vector(*boxes(1, 2))
    made = vector(*boxes(1, 2), observation_mode="different")
    assert made.single_observation_space == spaces.Box(0, 1, (2,))
    assert made.observation_space.high.tolist() == [[1, 1], [2, 2]]
    assert made.reset()[0].shape == (2, 2)
    own = spaces.Box(0, 9, (2, 2)), spaces.Box(0, 9, (2,))
    made = vector(*boxes(1, 2), observation_mode=own)
    assert (made.observation_space, made.single_observation_space) == own


@pytest.mark.parametrize(
    ("env_fns", "keywords", "error", "told"),
    [
        (boxes(1) + boxes(1, shape=(3,)), {"observation_mode": "different"}, RuntimeError, "env 1"),
        (
            [Counting, partial(Sampling, Counting.observation_space, spaces.Discrete(2))],
            {},
            RuntimeError,
            r"env 1: action_space is Discrete\(2\), but env 0 has Discrete\(5\)",
        ),
        ([Counting], {"observation_mode": "some"}, ValueError, "Invalid `observation_mode`.*some"),
        ([Counting], {"observation_mode": (1, 2)}, TypeError, "to be Spaces"),
        ([Counting], {"autoreset_mode": "Never"}, ValueError, "Never"),
        ([Counting], {"context": "illegal"}, ValueError, "cannot find context for 'illegal'"),
        ([Counting], {"max_concurrency": 0}, ValueError, "must be a positive or None, got 0"),
        ([Counting], {"max_concurrency": 1.5}, ValueError, "must be an integer or None"),
        ([Counting], {"worker": print}, ConfigError, "worker must be None"),
        (None, {"task": "MoveToBeacon", "max_concurrency": 2}, ConfigError, "for env_fns"),
    ],
    ids=str,
)
def test_wrong_input_is_told(env_fns, keywords, error, told):
    with pytest.raises(error, match=told):
        SC2VectorEnv(env_fns, **keywords)


@without_workers
def test_each_env_gets_its_seed(vector):
    made = vector(Counting, Counting, seed=3)
    assert made.reset()[1]["keywords"]["seed"].tolist() == [3, 4], "the constructor's, once"
    for seed, given in [
        (None, [None, None]),
        (5, [5, 6]),
        (np.int64(7), [7, 8]),
        ([None, 9], [None, 9]),
    ]:
        _, infos = made.reset(seed=seed, options={"level": 2})
        assert infos["keywords"]["seed"].tolist() == given
        assert infos["keywords"]["options"]["level"].tolist() == [2, 2]
    for seed, told in [
        ([1], "must match num_envs=2 but got length=1"),
        (-1, "at least 0, got -1"),
        ([1, 1.5], r"got 1\.5"),
        (True, "got True"),
    ]:
        with pytest.raises(ValueError, match=told):
            made.reset(seed=seed)


@without_workers
def test_one_seed_gives_a_task_the_episodes_of_a_run(vector_task, vec_task, gym_env):
    made = vector_task(n=2, seed=4)
    shown = [made.reset()[0], made.step([3, 3])[0]]
    single = gym_env()
    for env, seed in enumerate([4, None]):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], shown[0][env])
        np.testing.assert_array_equal(single.step(3)[0], shown[1][env])
    np.testing.assert_array_equal(vec_task(n=2, seed=4).reset(), shown[0])
    np.testing.assert_array_equal(made.reset(seed=4)[0], shown[0])
    np.testing.assert_array_equal(made.reset(seed=4, options={"level": 1})[0], shown[0])


@without_workers
def test_a_list_gives_each_tasks_first_episode_a_seed_of_its_own(vector_task, gym_env):
    made = vector_task(n=2)
    shown, _ = made.reset(seed=[4, 5])
    single = gym_env()
    for env, seed in enumerate([4, 5]):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], shown[env])
    alike, _ = made.reset(seed=[5, 5])
    np.testing.assert_array_equal(alike, shown[[1, 1]])
    one_of_two, _ = made.reset(seed=[None, 4])
    np.testing.assert_array_equal(one_of_two[1], shown[0])
    assert (one_of_two[0] != one_of_two[1]).any()


def test_it_is_a_vector_env_without_a_class_in_between():
    """skrl looks for `VectorEnv` in `__bases__`."""
    assert SC2VectorEnv.__bases__ == (VectorEnv,)


@without_workers
def test_repr(vector, vector_task):
    assert repr(vector(Counting)) == "SC2VectorEnv(env_fns, n=1, closed=False)"
    made = vector_task(n=1, realtime=True)
    told = "task=MoveToBeacon, n=1, spares=0, realtime=True, game_version='standin"
    assert repr(made).startswith(f"SC2VectorEnv({told}")
    made.close()
    assert repr(made).endswith(", closed=True)")


@without_workers
def test_an_env_that_was_never_reset_may_be_stepped(vector):
    made = vector(Counting, partial(Answering, info={"once": True}))
    observations, _, _, _, infos = made.step([0, 0])
    assert observations.tolist() == [[1.0], [1.0]]
    assert infos["_once"].tolist() == [False, True]
