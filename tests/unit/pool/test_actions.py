"""The check of a batch of actions."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ActionError
from sc2pool.pool.actions import check, count

pytestmark = pytest.mark.usefixtures("step_path")
BOX = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 5], np.float32))
GOOD = [
    (spaces.Discrete(3), [0, 2]),
    (spaces.Discrete(3), np.array([0, 2], np.uint8)),
    (spaces.Discrete(3, start=-1), [-1, 1]),
    (spaces.Discrete(3), np.array([0, 5, 2, 5])[::2]),
    (spaces.MultiDiscrete([2, 3]), [[0, 2], [1, 0]]),
    (spaces.MultiDiscrete([2, 3], start=[5, 0]), [[5, 2], [6, 0]]),
    (spaces.MultiBinary(2), [[0, 1], [1, 1]]),
    (spaces.MultiBinary(2), [[False, True], [True, True]]),
    (spaces.MultiBinary(2), np.array([[0, 1], [1, 1]], np.float32)),
    (BOX, [[0.5, 5], [-1, 0]]),
    (BOX, [np.zeros(2), np.ones(2, int)]),
]


@pytest.mark.parametrize(("space", "actions"), GOOD, ids=str)
def test_good_actions_come_back_as_one_array(space, actions):
    checked = check(space, actions, range(2))
    assert isinstance(checked, np.ndarray)
    np.testing.assert_array_equal(checked, np.asarray(actions))


def test_a_box_action_is_clipped_and_has_the_spaces_type():
    checked = check(BOX, [[-7.0, 9.0], [np.inf, -np.inf]], range(2))
    assert checked.dtype == np.float32
    assert checked.tolist() == [[-1, 5], [1, 0]]


@pytest.mark.parametrize(
    ("space", "actions", "told"),
    [
        (spaces.Discrete(3), [0, 3], r"env 8: action 3 is not in Discrete\(3\)"),
        (spaces.Discrete(3), [-1, 0], "env 4: action -1"),
        (spaces.Discrete(3), np.array([0, 5, 3, 5])[::2], "env 8: action 3"),
        (spaces.Discrete(3), np.array([2**63, 0], np.uint64), f"env 4: action {2**63}"),
        (spaces.Discrete(3, start=2), [2, 1], "env 8: action 1"),
        (spaces.Discrete(3), [0.0, 1.0], "must be integers, got dtype float64"),
        (spaces.Discrete(3), [True, False], "must be integers, got dtype bool"),
        (spaces.Discrete(3), ["a", "b"], "must be integers"),
        (spaces.Discrete(3), [None, 1], "must be integers"),
        (spaces.Discrete(3), [[0], [1]], r"must have shape \(2,\), got \(2, 1\)"),
        (spaces.Discrete(3), [[0], [1, 2]], "do not form an array"),
        (spaces.MultiDiscrete([2, 3]), [[0, 0], [2, 0]], r"env 8: action \[2, 0\]"),
        (spaces.MultiDiscrete([2, 3]), [0, 0], r"must have shape \(2, 2\)"),
        (spaces.MultiBinary(2), [[0, 2], [0, 0]], r"env 4: action \[0, 2\]"),
        (spaces.MultiBinary(2), [[0, 1], [0, 0.5]], r"env 8: action \[0.0, 0.5\]"),
        (spaces.MultiBinary(2), [[np.nan, 1], [0, 0]], r"env 4: action \[nan, 1.0\]"),
        (BOX, [[0, 0], [np.nan, 0]], r"env 8: action \[nan, 0.0\]"),
        (BOX, [["a", "b"]] * 2, "must be numbers"),
        (spaces.Text(2), ["ab", "abc"], "env 8: action 'abc' is not in Text"),
        (spaces.Dict(a=spaces.Discrete(2)), [{"a": 2}, {}], "env 4: action {'a': 2}"),
        (spaces.Discrete(3), [0], "expected 2 actions, one per env, got 1"),
        (spaces.Discrete(3), np.zeros((0,), int), "got 0"),
        (spaces.Discrete(3), 1, "got 1"),
        (spaces.Discrete(3), None, "got None"),
    ],
    ids=str,
)
def test_bad_actions_are_told_with_their_env(space, actions, told):
    with pytest.raises(ActionError, match=told) as raised:
        check(space, actions, [4, 8])
    assert isinstance(raised.value, ValueError)


def test_the_given_actions_are_not_changed():
    given = np.array([[9.0, 9.0], [0.0, 0.0]])
    check(BOX, given, range(2))
    assert given[0].tolist() == [9, 9]


def test_count_asks_nothing_but_their_number():
    count(["anything", None], 2)
    count({1: 2, 3: 4}, 2)
