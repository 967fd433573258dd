"""Clauses 3, 4 and 7 of the contract: batches, autoreset, structure of observations and actions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool.errors import ActionError
from tests.contract.conftest import without_workers
from tests.contract.envs import Answering, Counting, Sampling
from tests.support.pools import begun

PLAIN = {
    "discrete": spaces.Discrete(4),
    "discrete from 2": spaces.Discrete(3, start=2),
    "multidiscrete": spaces.MultiDiscrete([2, 3]),
    "multibinary": spaces.MultiBinary(3),
    "box": spaces.Box(np.zeros(2, np.float32), np.ones(2, np.float32)),
    "scalar box": spaces.Box(-1, 1, (), np.float64),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
}


def test_shapes_and_types_of_a_step(vec):
    made = vec(Counting, Counting, Counting)
    observations = made.reset()
    assert (observations.shape, observations.dtype) == ((3, 1), np.float32)
    observations, rewards, dones, infos = made.step(np.zeros(3, np.int64))
    assert (observations.shape, observations.dtype) == ((3, 1), np.float32)
    assert (rewards.shape, rewards.dtype) == ((3,), np.float64)
    assert (dones.shape, dones.dtype) == ((3,), np.bool_)
    assert [info["count"] for info in infos] == [1, 1, 1]


@without_workers
@pytest.mark.parametrize(
    "reward", [np.ones(1), np.ones((1, 1)), [1.0], np.float32(1), np.array(1.0), 1, True], ids=repr
)
def test_a_reward_may_be_an_array_of_one(vec, vector, reward):
    for made in (vec(partial(Answering, reward=reward)), vector(partial(Answering, reward=reward))):
        made.reset()
        rewards = made.step([0])[1]
        assert (rewards.tolist(), rewards.dtype) == ([1.0], np.float64)


def test_a_batch_is_never_written_again(vec):
    made = vec(partial(Counting, 3), partial(Counting, 4))
    batches = [(made.reset(), np.zeros(2), np.zeros(2, bool))]
    kept = []
    for _ in range(6):
        kept += [[array.copy() for array in batches[-1]]]
        batches.append(made.step([0, 0])[:3])
    for batch, as_it_was in zip(batches, kept, strict=False):
        for array, was in zip(batch, as_it_was, strict=True):
            np.testing.assert_array_equal(array, was)


@pytest.mark.parametrize(
    ("end", "cut_short"), [("terminated", False), ("truncated", True), ("both", False)]
)
def test_an_episode_goes_over_into_the_next_within_the_step(vec, end, cut_short):
    lengths = (2, 3)
    made = begun(vec(*(partial(Counting, length, end) for length in lengths)))
    for step in range(1, 7):
        observations, _, dones, infos = made.step([0, 0])
        for env, length in enumerate(lengths):
            over = step % length == 0
            assert dones[env] == over
            assert observations[env] == step % length
            assert ("terminal_observation" in infos[env]) == over
            assert infos[env]["TimeLimit.truncated"] == (over and cut_short)
            if over:
                assert infos[env]["terminal_observation"].tolist() == [float(length)]
                assert infos[env]["terminal_observation"].dtype == np.float32


def test_reset_infos_are_those_of_the_newest_reset(vec):
    made = vec(partial(Counting, 1), partial(Counting, 9))
    made.seed(10)
    made.reset()
    assert made.reset_infos == [{"keywords": {"seed": 10}}, {"keywords": {"seed": 11}}]
    made.step([0, 0])
    assert made.reset_infos == [{"keywords": {}}, {"keywords": {"seed": 11}}]


def check_batch(batch: np.ndarray, space: spaces.Space) -> None:
    assert (len(batch), batch.dtype) == (2, space.dtype)
    assert all(space.contains(row) for row in batch)


@without_workers
@pytest.mark.parametrize("space", PLAIN.values(), ids=PLAIN)
def test_plain_spaces(vec, space):
    made = vec(*[partial(Sampling, space)] * 2)
    check_batch(made.reset(), space)
    actions = [made.action_space.sample() for _ in range(2)]
    for given in (actions, np.array(actions), tuple(actions)):
        check_batch(made.step(given)[0], space)
        for sent, arrived in zip(actions, made.get_attr("last_action"), strict=True):
            np.testing.assert_array_equal(arrived, sent)
            assert space.contains(arrived)


@without_workers
def test_nested_spaces_keep_their_structure_and_the_spaces_order(vec):
    space = spaces.Dict(
        [("z", PLAIN["box"]), ("a", spaces.Tuple([PLAIN["discrete"], spaces.Dict(PLAIN)]))]
    )
    made = vec(*[partial(Sampling, space, PLAIN["discrete"])] * 2)
    for observations in (made.reset(), made.step([0, 1])[0]):
        assert list(observations) == list(space.spaces)
        check_batch(observations["z"], PLAIN["box"])
        assert isinstance(observations["a"], tuple)
        check_batch(observations["a"][0], PLAIN["discrete"])
        assert list(observations["a"][1]) == list(space["a"][1].spaces)
        for name, batch in observations["a"][1].items():
            check_batch(batch, PLAIN[name])


@pytest.mark.parametrize(
    "action_space",
    [
        spaces.Dict(go=spaces.Discrete(3), where=spaces.Box(0, 1, (2,))),
        spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2)]),
        spaces.Text(8),
        spaces.Sequence(spaces.Discrete(4)),
    ],
    ids=["dict", "tuple", "text", "sequence"],
)
def test_actions_of_any_structure_arrive_as_they_were_sent(vec, action_space):
    made = begun(vec(*[partial(Sampling, spaces.Discrete(2), action_space)] * 2))
    for _ in range(3):
        actions = [action_space.sample() for _ in range(2)]
        made.step(actions)
        for sent, arrived in zip(actions, made.get_attr("last_action"), strict=True):
            assert type(arrived) is type(sent)
            assert action_space.contains(arrived)
            np.testing.assert_equal(arrived, sent)


@without_workers
@pytest.mark.parametrize(
    "space",
    [spaces.Text(5), spaces.Dict(a=spaces.Sequence(spaces.Discrete(3)), b=spaces.Discrete(2))],
    ids=["text", "dict with a sequence"],
)
def test_observations_without_fixed_layout_come_as_a_tuple_of_n(vec, space):
    made = vec(*[partial(Sampling, space, spaces.Discrete(2))] * 2)
    for observations in (made.reset(), made.step([0, 1])[0]):
        assert isinstance(observations, tuple)
        assert all(space.contains(observation) for observation in observations)


def test_an_env_gets_its_actions_unchecked_and_its_observations_are_cast(vec):
    made = begun(vec(partial(Answering, observation=[np.nan], reward=np.float32(0.5))))
    observations, rewards, _, _ = made.step([99])
    assert observations.dtype == np.float32
    assert np.isnan(observations).all()
    assert rewards.tolist() == [0.5]
    assert made.get_attr("actions") == [[99]]


def test_actions_may_change_once_they_are_sent(vec):
    made = begun(vec(Counting, Counting))
    actions = np.array([1, 2])
    made.step_async(actions)
    actions[:] = 4
    made.step_wait()
    assert made.get_attr("actions") == [[1], [2]]


def test_another_number_of_actions_is_an_action_error_and_nothing_is_sent(vec):
    made = begun(vec(Counting, Counting))
    for actions in ([0], [0, 0, 0], 3, None):
        with pytest.raises(ActionError, match="expected 2 actions, one per env"):
            made.step(actions)
    assert made.get_attr("count") == [0, 0]
    assert made.step([0, 0])[0].tolist() == [[1.0], [1.0]]


def test_calls_out_of_order_are_told_and_do_no_harm(vec):
    made = begun(vec(Counting, Counting))
    with pytest.raises(NoAsyncCallError):
        made.step_wait()
    made.step_async([0, 0])
    with pytest.raises(AlreadyPendingCallError, match="or does another thread step them"):
        made.step_async([0, 0])
    with pytest.raises(AlreadyPendingCallError):
        made.pause()
    assert made.step_wait()[0].tolist() == [[1.0], [1.0]]
    with pytest.raises(NoAsyncCallError):
        made.step_wait()
    assert made.get_attr("count") == [1, 1]


def test_a_reset_cancels_the_pending_step(vec):
    made = begun(vec(partial(Counting, 2), partial(Counting, 5)))
    made.step([0, 0])
    made.step_async([1, 1])  # ends the episode of env 0
    assert made.reset().tolist() == [[0.0], [0.0]]
    assert made.step([2, 2])[0].tolist() == [[1.0], [1.0]]


def test_a_task_is_checked_before_any_game_gets_an_action(vec_task):
    made = vec_task()
    with pytest.raises(ResetNeeded):
        made.step([0, 0])
    made.seed(3)
    first = made.reset()
    for wrong, told in [
        ([0, 8], r"env 1: action 8 is not in Discrete\(8\)"),
        ([0.0, 1.0], "must be integers, got dtype float64"),
    ]:
        with pytest.raises(ActionError, match=told):
            made.step(wrong)
    after = made.step([0, 0])[0]
    made.seed(3)
    np.testing.assert_array_equal(made.reset(), first)
    np.testing.assert_array_equal(made.step([0, 0])[0], after)
