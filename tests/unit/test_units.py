"""Tests `select`, the numbers of selected units, and the commands that `act` can return."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from s2clientprotocol import raw_pb2

from sc2pool.commands import as_actions, command, move, stop
from sc2pool.errors import ConfigError, UserCodeError
from sc2pool.units import (
    ENEMY,
    NEUTRAL,
    Kind,
    distances,
    health,
    select,
    shield,
    unit_id,
    unit_ids,
    weapon_cooldown,
    with_tags,
)

# ---- selected units ------------------------------------------------------------------------------


BEACONS = Kind("Beacon_Terran", NEUTRAL)
ENEMY_ROACHES = Kind("Roach", ENEMY)
MARINE = unit_id("Marine")
OWN_MARINES = Kind("Marine")

ENEMY_MARINES = Kind(MARINE, ENEMY_ROACHES.alliance)


def test_only_the_kinds_asked_for(unit, state):
    observation = state(
        unit(OWN_MARINES, 1, 2, tag=1),
        unit(ENEMY_MARINES, 3, 4, tag=2),
        unit(BEACONS, 5, 6, tag=3),
    )
    enemies, marines, roaches = select(observation, ENEMY_MARINES, OWN_MARINES, ENEMY_ROACHES)
    assert (enemies.tags, marines.tags) == ([2], [1])
    assert marines.positions.tolist() == [[1, 2]]
    assert len(roaches) == 0
    assert roaches.positions.shape == (0, 2)
    assert health(roaches).shape == weapon_cooldown(roaches).shape == (0,)


def test_rows_follow_the_tags_not_the_message(unit, state):
    observation = state(
        unit(OWN_MARINES, 9, 9, tag=2**63 + 5, health=9, weapon_cooldown=1),
        unit(OWN_MARINES, 1, 1, tag=4, health=45, weapon_cooldown=0),
    )
    (marines,) = select(observation, OWN_MARINES)
    assert marines.tags == [4, 2**63 + 5]
    assert marines.positions.tolist() == [[1, 1], [9, 9]]
    assert health(marines).tolist() == [45, 9]
    assert weapon_cooldown(marines).tolist() == [0, 1]


def test_distances():
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert distances(points, points[1:]).tolist() == [[5.0], [0.0]]
    assert distances(points, np.empty((0, 2))).shape == (2, 0)


def test_units_are_followed_by_their_tags(unit, state):
    observation = state(
        unit(OWN_MARINES, 1, 2, tag=1, shield=0),
        unit(ENEMY_MARINES, 3, 4, tag=2, health=30, shield=5),
    )
    there, units = with_tags(observation, [2, 9, 1])
    assert there.tolist() == [True, False, True]
    assert units.tags == [2, 1]
    assert units.positions.tolist() == [[3, 4], [1, 2]]
    assert shield(units).tolist() == [5, 0]
    assert health(units).tolist() == [30, 0]


def test_none_of_the_tags_is_there(state):
    there, units = with_tags(state(), [4])
    assert there.tolist() == [False]
    assert units.positions.shape == (0, 2)
    there, units = with_tags(state(), [])
    assert (there.dtype, there.shape, len(units)) == (np.bool_, (0,), 0)


def test_a_kind_is_named_or_numbered():
    assert Kind("Marine") == Kind(48, raw_pb2.Self) == (48, raw_pb2.Self)
    assert Kind("Roach", ENEMY) == (110, raw_pb2.Enemy)
    assert pickle.loads(pickle.dumps(Kind("SCV"))) == Kind("SCV")


@pytest.mark.parametrize(
    ("given", "told"),
    [((unit,), "a name or an id of 32 bits") for unit in (-1, 2**32, 1.5, None)]
    + [(("Marine", side), "side is OWN, ENEMY or NEUTRAL") for side in (0, 9, "enemy", None)],
)
def test_a_kind_or_a_side_that_is_none(given, told):
    with pytest.raises(ConfigError, match=f"{told}, got {given[-1]!r}"):
        Kind(*given)


@pytest.mark.parametrize("wrong", ["Marine", (48, 1), [OWN_MARINES]], ids=repr)
def test_what_is_selected_is_a_kind(state, wrong):
    with pytest.raises(ConfigError, match=r'kinds are Kind objects, such as Kind\("Marine"\), got'):
        select(state(), wrong)


def test_a_wrong_name_is_answered_with_similar_ones():
    with pytest.raises(ConfigError, match="no unit type is called 'Marin'; similar: Marine"):
        Kind("Marin")
    with pytest.raises(ConfigError, match="called 'SIEGE_TANK'; similar: SiegeTank"):
        unit_id("SIEGE_TANK")


def test_names_and_ids_are_those_of_python_sc2():
    ids = pytest.importorskip("sc2.ids.unit_typeid").UnitTypeId
    theirs = {member.name: member.value for member in ids}
    ours = {re.sub("[_@]", "", name).upper(): number for name, number in unit_ids().items()}
    theirs = {name.replace("_", ""): number for name, number in theirs.items()}
    assert {name: theirs[name] for name in ours} == ours


# ---- commands ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("tags", [np.array(5), 5, None, [1.5], np.ones((2, 2), int)], ids=repr)
def test_tags_are_several_whole_numbers(tags):
    with pytest.raises(UserCodeError, match="tags must be a list or an array of units' tags, got"):
        stop(tags)


NOT_FINITE = [(np.nan, 1.0), (1e39, 1.0), (1.0, -np.inf), np.array([0, np.nan])]
NOWHERE = [np.array(9), (1, 2, 3), "ab", np.ones((2, 2)), -1, np.int64(-1), 2**64, (10**400, 1)]


@pytest.mark.parametrize(
    ("target", "told"),
    [(one, r"the target .* of ability 3794 is not finite") for one in NOT_FINITE]
    + [(one, r"target of ability 3794 must be a point \(x, y\) or a unit's ") for one in NOWHERE],
    ids=lambda part: f"{part!r:.20}",
)
def test_a_target_is_a_finite_point_or_a_tag(target, told):
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
