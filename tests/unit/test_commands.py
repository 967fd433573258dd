"""What `act` may return."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.commands import as_actions, command, move, stop
from sc2pool.errors import UserCodeError


@pytest.mark.parametrize(
    "none", [None, [], (), iter(())], ids=["None", "list", "tuple", "iterator"]
)
def test_no_command(none):
    assert as_actions(none) == []


def test_commands_from_any_iterable():
    orders = [move([1], (2.0, 3.0)), stop([1])]
    for given in (orders, tuple(orders), iter(orders)):
        assert [action.action_raw.unit_command for action in as_actions(given)] == orders


@pytest.mark.parametrize("scalar", [np.int64, np.uint64, np.int32])
def test_arrays_and_scalars_of_numpy(scalar):
    tags = np.array([7, 8], scalar)
    assert move(tags, scalar(9)) == move([7, 8], 9)
    for point in (np.array([2.5, 3.0]), np.array([2.5, 3.0], np.float32), [2.5, 3.0]):
        assert move(tags, point) == move([7, 8], (2.5, 3.0))


@pytest.mark.parametrize(
    "point", [(np.nan, 1.0), (1e39, 1.0), (1.0, -np.inf), np.array([0, np.nan])]
)
def test_a_target_is_finite(point):
    with pytest.raises(UserCodeError, match=r"the target .* of ability 3794 is not finite"):
        move([1], point)


@pytest.mark.parametrize("tags", [np.array(5), 5, None, [1.5], np.ones((2, 2), int)], ids=repr)
def test_tags_are_several_whole_numbers(tags):
    with pytest.raises(UserCodeError, match="tags must be a list or an array of units' tags, got"):
        stop(tags)


@pytest.mark.parametrize(
    "target",
    [np.array(9), (1, 2, 3), "ab", np.ones((2, 2)), -1, np.int64(-1), 2**64, (10**400, 1)],
    ids=lambda target: f"{target!r:.20}",
)
def test_a_target_is_a_point_or_a_tag(target):
    told = r"target of ability 3794 must be a point \(x, y\) or a unit's tag, got "
    with pytest.raises(UserCodeError, match=told):
        move([1], target)


@pytest.mark.parametrize(
    ("ability_id", "queued"), [("attack", False), (2**40, True), (None, True), (3794, "yes")]
)
def test_an_ability_is_a_number(ability_id, queued):
    with pytest.raises(UserCodeError) as caught:
        command(ability_id, [1], queued=queued)
    assert str(caught.value) == (
        "an ability's id must be a whole number, and queued True or False, got "
        f"{ability_id!r} and {queued!r}"
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (5, "; got 5"),
        (stop([1]), "; got ability_id: 3665"),
        ([stop([1]), (1, 2)], r"; item 1 is \(1, 2\)"),
        ("move", "; item 0 is 'm'"),
        ([None], "; item 0 is None"),
    ],
    ids=["number", "one command", "tuple in it", "text", "None in it"],
)
def test_wrong_arguments_are_refused(wrong, told):
    expected = r"act must return a list of raw_pb2.ActionRawUnitCommand \(see sc2pool.commands"
    with pytest.raises(UserCodeError, match=f"{expected}.*{told}"):
        as_actions(wrong)
