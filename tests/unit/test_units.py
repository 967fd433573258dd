"""`select` finds the right units, in a stable order, with the right numbers."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from s2clientprotocol import raw_pb2

from sc2pool.errors import ConfigError
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
    marines, roaches = select(observation, OWN_MARINES, ENEMY_ROACHES)
    assert marines.tags == [1]
    assert marines.positions.tolist() == [[1, 2]]
    assert len(roaches) == 0
    assert roaches.positions.shape == (0, 2)


def test_both_sides_of_one_type(unit, state):
    observation = state(unit(OWN_MARINES, 0, 0, tag=1), unit(ENEMY_MARINES, 0, 0, tag=2))
    enemies, own = select(observation, ENEMY_MARINES, OWN_MARINES)
    assert (enemies.tags, own.tags) == ([2], [1])


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


def test_an_empty_observation(state):
    (marines,) = select(state(), OWN_MARINES)
    assert marines.tags == []
    assert health(marines).shape == weapon_cooldown(marines).shape == (0,)


def test_distances():
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert distances(points, points[1:]).tolist() == [[5.0], [0.0]]
    assert distances(points, np.empty((0, 2))).shape == (2, 0)


def test_units_of_real_games(recorded):
    for _, seen in recorded:
        messages = seen.observation.raw_data.units
        own = next(unit for unit in messages if unit.alliance == 1)
        (units,) = select(seen.observation, Kind(own.unit_type, 1))
        assert sorted(units.tags) == units.tags
        first = next(unit for unit in messages if unit.tag == units.tags[0])
        assert units.positions[0].tolist() == pytest.approx([first.pos.x, first.pos.y])
        assert (health(units) > 0).all()


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


@pytest.mark.parametrize("unit", [-1, 2**32, 1.5, None])
def test_a_kind_that_is_none(unit):
    with pytest.raises(ConfigError, match=f"a name or an id of 32 bits, got {unit}"):
        Kind(unit)


@pytest.mark.parametrize("side", [0, 9, "enemy", None])
def test_a_side_that_is_none(side):
    with pytest.raises(ConfigError, match=f"side is OWN, ENEMY or NEUTRAL, got {side!r}$"):
        Kind("Marine", side)


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
