"""Clauses 6 and 10 of the contract: how a trainer uses attributes and methods of the envs."""

from __future__ import annotations

import re
import threading
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import TimeLimit

from sc2pool.errors import UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Derived, Outer
from tests.contract.tasks import Masked, SometimesMasked
from tests.support.pools import begun

EACH_OF_THREE = [
    (None, [0, 1, 2]),
    (1, [1]),
    (-1, [2]),
    (np.int64(2), [2]),
    ([0, 2], [0, 2]),
    ([-1, 0], [2, 0]),
    ((1, 1), [1, 1]),
    (range(2), [0, 1]),
    (np.array([2, 0]), [2, 0]),
    ([], []),
]


@without_workers
def test_all_kinds_of_indices(vec):
    made = vec(Counting, Counting, Counting)
    for env in range(3):
        assert made.set_attr("count", env, indices=env) is None
    for indices, envs in EACH_OF_THREE:
        assert made.get_attr("count", indices) == envs
        assert len(made.env_method("area", indices=indices)) == len(envs)
        assert made.env_is_wrapped(Outer, indices) == [False] * len(envs)
    assert made.get_attr("count", indices=(env for env in (2, 1))) == [2, 1]
    for indices, envs in EACH_OF_THREE:
        made.set_attr("count", 0)
        made.set_attr("count", 5, indices=indices)
        assert made.get_attr("count") == [5 * (env in envs) for env in range(3)]


WRONG_INDICES = [
    (3, IndexError),
    ([0, -4], IndexError),
    ("a", TypeError),
    (1.5, TypeError),
    ([True, False, True], TypeError),
]


@without_workers
def test_wrong_indices_are_told_before_anything_is_asked(vec):
    made = vec(Counting, Counting, Counting)
    for call in (
        partial(made.get_attr, "count"),
        partial(made.set_attr, "count", 9),
        partial(made.env_method, "area"),
        partial(made.env_is_wrapped, Outer),
    ):
        for indices, error in WRONG_INDICES:
            told = re.escape(f"indices must be numbers of the 3 envs, got {indices!r}")
            with pytest.raises(error, match=told):
                call(indices=indices)
    assert made.get_attr("count") == [0, 0, 0]


@without_workers
def test_wrappers_are_looked_through(vec):
    made = vec(Counting, lambda: Outer(TimeLimit(Derived(Counting()), 5)))
    assert made.has_attr("outer_only") is False, "not every env has it"
    assert made.has_attr("count") is True
    assert made.get_attr("outer_only", 1) == ["outer"]
    assert made.env_method("wrapped_twice", indices=1) == [2]
    made.set_attr("length", 2)
    made.reset()
    made.step([0, 0])
    assert made.step([0, 0])[2].all(), "the attribute arrived where it is used"


@without_workers
def test_a_wrapper_is_known_by_its_class_or_one_derived_from_it(vec):
    made = vec(Counting, lambda: Outer(Counting()), lambda: TimeLimit(Derived(Counting()), 5))
    assert made.env_is_wrapped(Outer) == [False, True, True]
    assert made.env_is_wrapped(Derived) == [False, False, True]
    assert made.env_is_wrapped(TimeLimit) == [False, False, True]
    assert made.env_is_wrapped(Counting) == [False, False, False]


def test_unpicklable_attribute_is_refused_with_an_error(vec):
    def with_a_lock() -> Counting:
        env = Counting()
        env.lock = threading.Lock()
        return env

    made = vec(with_a_lock)
    assert made.has_attr("lock")
    with pytest.raises(TypeError, match="cannot pickle"):
        made.get_attr("lock")
    with pytest.raises(TypeError, match="cannot pickle"):
        made.set_attr("lock", threading.Lock())
    assert made.step([0])[0].tolist() == [[1.0]]


def test_exception_of_a_call_is_raised_here_and_the_pool_goes_on(vec):
    made = begun(vec(Counting, Counting))
    with pytest.raises(AttributeError, match="no_such_thing"):
        made.get_attr("no_such_thing")
    with pytest.raises(AttributeError, match="no_such_thing"):
        made.env_method("no_such_thing")
    with pytest.raises(LookupError, match="as asked") as raised:
        made.env_method("fail")
    assert "in fail" in str(raised.value.__cause__), "the traceback in the worker"
    with pytest.raises(TypeError, match="unexpected keyword"):
        made.env_method("area", depth=1)
    assert made.step([0, 0])[0].tolist() == [[1.0], [1.0]]


@without_workers
def test_the_vec_env_forwards_no_attributes(vec):
    made = vec(Counting)
    with pytest.raises(AttributeError):
        _ = made.count


@without_workers
def test_an_env_keeps_what_it_makes_of_an_attribute(vec):
    made = vec(partial(Counting, 1))
    made.set_attr("steps_in_life", 100)
    made.reset()
    for _ in range(3):
        made.step([0])
    made.reset()
    assert made.get_attr("steps_in_life") == [103]


@without_workers
def test_a_value_stays_as_it_was_when_it_was_set(vec_task):
    made = vec_task(n=1)
    value = {"speed": [1]}
    made.set_attr("told", value)
    value["speed"].append(2)
    made.reset()
    made.reset()
    assert made.get_attr("told") == [{"speed": [1]}], "in the task of a later episode"


def test_calls_while_a_step_is_pending(vec):
    made = begun(vec(Counting, Counting))
    made.step_async([0, 0])
    made.set_attr("mark", 4)
    assert made.get_attr("mark") == [4, 4]
    assert made.step_wait()[0].tolist() == [[1.0], [1.0]]


class TestTasks:
    """A task object lives for one episode; an attribute that was set holds for later episodes."""

    def test_set_attr_survives_episodes(self, vec_task):
        made = vec_task()
        made.set_attr("max_loops", 16)
        made.set_attr("mark", "first", indices=0)
        for _ in range(2):
            made.reset()
            assert made.get_attr("mark", indices=0) == ["first"]
            assert not made.has_attr("mark")
            dones = [made.step([0, 0])[2] for _ in range(4)]
            assert np.all(dones, axis=1).tolist() == [False, True, False, True]

    def test_attributes_set_in_mid_episode_hold_at_once(self, vec_task):
        made = begun(vec_task())
        made.step([0, 0])
        made.set_attr("step_mul", 16)
        made.set_attr("max_loops", 24)
        assert made.step([0, 0])[2].tolist() == [True, True]

    @pytest.mark.parametrize("loops", [2.5, 0, "8"], ids=repr)
    def test_a_wrong_step_mul_is_the_users(self, vec_task, loops):
        made = begun(vec_task())
        made.set_attr("step_mul", loops)
        with pytest.raises(UserCodeError, match=f"at least 1, got {loops!r}"):
            made.step([0, 0])

    def test_methods_and_attributes_of_the_running_task(self, vec_task):
        made = begun(vec_task())
        assert [info.map_name for info in made.get_attr("game_info")] == ["MoveToBeacon"] * 2
        assert made.env_method("observe", indices=[1])[0].shape == (5,)
        assert made.env_is_wrapped(Outer) == [False, False]
        with pytest.raises(AttributeError, match="no_such_thing"):
            made.env_method("no_such_thing")
        made.step([0, 0])


@pytest.fixture
def masked(vec_task):
    """Two envs at the beginning of an episode."""
    return begun(vec_task(Masked))


class TestActionMasks:
    """Masks come with the observation, so a call for masks needs no message to the worker."""

    def test_masks_are_those_of_the_newest_observation(self, masked):
        for allowed in (0, 1, 2, 3, 0, 1):
            masks = masked.env_method("action_masks")
            assert [mask.tolist() for mask in masks] == [[k == allowed for k in range(8)]] * 2
            masked.step([0, 0])

    def test_the_task_is_not_asked_again(self, masked):
        for _ in range(3):
            masked.env_method("action_masks", indices=[1])
        assert masked.get_attr("times_asked") == [1, 1]

    def test_all_actions_are_allowed_where_the_task_returned_none(self, vec_task):
        made = vec_task(SometimesMasked)
        made.set_attr("rests", True, indices=0)
        made.reset()
        for _ in range(3):
            resting, playing = made.env_method("action_masks")
            assert resting.tolist() == [True] * 8
            assert playing.sum() == 1
        assert made.get_attr("times_asked") == [1, 1]

    def test_a_task_without_masks_does_not_have_the_method(self, vec_task):
        made = begun(vec_task(n=1))
        assert not made.has_attr("action_masks")
        with pytest.raises(AttributeError, match="action_masks"):
            made.env_method("action_masks")

    def test_before_the_first_reset_masks_cannot_be_asked_and_attributes_can_be_set(self, vec_task):
        made = vec_task(Masked)
        assert made.has_attr("action_masks")
        with pytest.raises(ResetNeeded, match="reset"):
            made.env_method("action_masks")
        made.set_attr("mood", "calm", indices=1)
        made.reset()
        assert made.get_attr("mood", indices=1) == ["calm"]
        with pytest.raises(AttributeError, match="mood"):
            made.get_attr("mood", indices=0)

    def test_an_env_of_the_users_is_asked_itself(self, vec):
        def masking() -> Counting:
            env = Counting()
            env.action_masks = lambda: np.array([env.count == 1] * 5)
            return env

        made = begun(vec(masking))
        made.step([0])
        assert made.env_method("action_masks")[0].all()
