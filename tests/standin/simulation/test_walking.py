"""Walking: speed, arrival, queues, patrols, crowds, following; the same in any step size."""

from __future__ import annotations

import math

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from tests.standin.sessions import apart, command

SMART, MOVE, PATROL, ATTACK = 1, 16, 17, 23
MARINE = 48


def test_a_marine_walks_at_its_speed_and_arrives_exactly(offline):
    offline.arena((MARINE, 1, 20, 20))
    offline.order(offline.one(MARINE), 3794, (30, 20))
    offline.step(16)
    (marine,) = offline.units(MARINE)
    assert marine.pos.x == pytest.approx(22.25)
    assert marine.orders[0].ability_id == MOVE
    assert marine.orders[0].target_world_space_pos.x == 30
    offline.step(60)
    (marine,) = offline.units(MARINE)
    assert (marine.pos.x, marine.pos.y) == (30, 20)
    assert not marine.orders
    assert marine.facing == pytest.approx(0)


def test_queue_patrol_stop(offline):
    offline.arena((MARINE, 1, 20, 20))
    (marine,) = offline.units(MARINE)
    offline.act(
        command(marine, MOVE, (22, 20)),
        command(marine, MOVE, (22, 22), queued=True),
        command(marine, PATROL, (22, 26), queued=True),
    )
    offline.step()
    assert [o.ability_id for o in offline.units(MARINE)[0].orders] == [MOVE, MOVE, PATROL]
    visited = set()
    for _ in range(160):
        offline.step()
        pos = offline.units(MARINE)[0].pos
        visited.add((round(pos.x, 1), round(pos.y, 1)))
    assert {(22, 20), (22, 22), (22, 26)} <= visited
    assert [o.ability_id for o in offline.units(MARINE)[0].orders] == [PATROL]
    offline.order(marine, 3665)
    offline.step()
    before = offline.units(MARINE)[0]
    assert not before.orders
    offline.step(10)
    assert offline.units(MARINE)[0].pos == before.pos
    farther = command(marine, MOVE, (30, 30), queued=True)
    for _ in range(33):
        assert offline.act(farther) == [1]
        offline.step()
    assert offline.act(farther) == [error_pb.OrderQueueIsFull]


def test_a_queue_that_becomes_full_is_an_error_of_the_next_loop(offline):
    """None of these orders is carried out before all of them are accepted."""
    offline.arena((MARINE, 1, 20, 20))
    order = command(offline.one(MARINE), MOVE, (30, 30), queued=True)
    assert offline.act(*[order] * 35) == [1] * 35
    offline.step()
    seen = offline.observed()
    assert [error.result for error in seen.action_errors] == [error_pb.OrderQueueIsFull] * 2
    assert len(offline.units(MARINE)[0].orders) == 33


def test_requests_take_effect_with_the_next_loop(offline):
    offline.arena((MARINE, 1, 20, 20))
    (marine,) = offline.units(MARINE)
    birth = debug_pb.DebugCreateUnit(unit_type=MARINE, owner=1, pos=common.Point2D(x=30, y=30))
    offline.debug(debug_pb.DebugCommand(create_unit=birth))
    offline.order(marine, MOVE, (30, 20))
    before = offline.observe()
    offline.step(0)
    assert offline.observe() == before
    assert not before.raw_data.units[0].orders
    offline.step()
    moved, born = offline.units(MARINE)
    assert moved.orders[0].ability_id == MOVE
    assert moved.pos.x > 20
    assert (born.pos.x, born.pos.y) == (30, 30)


@pytest.mark.parametrize("count", [1, 9])
def test_a_patrol_to_the_own_place_stands_until_the_next_order(offline, count):
    """Both ends of the patrol are reached at once, alone and in a crowd."""
    offline.start("DefeatRoaches" if count > 1 else "MoveToBeacon")
    group = offline.units(MARINE)
    assert len(group) == count
    x, y = (sum(getattr(u.pos, axis) for u in group) / count for axis in ("x", "y"))
    assert offline.order(group, PATROL, (x, y)) == 1
    offline.step(16)
    before = offline.units(MARINE)
    assert all(marine.orders[0].ability_id == PATROL for marine in before)
    assert offline.order(before, MOVE, (x, y + 4), queued=True) == 1
    offline.step(64)
    after = offline.units(MARINE)
    assert all(apart(a, b) > 0.5 for a, b in zip(before, after, strict=True))


def test_units_do_not_stay_stacked(offline):
    offline.arena((MARINE, 1, 20, 20, 6))
    offline.step(40)
    offline.order(offline.units(MARINE), MOVE, (30, 30))
    offline.step(400)
    marines = offline.units(MARINE)
    assert min(apart(a, b) for a in marines for b in marines if a is not b) > 0.5
    assert all(not marine.orders for marine in marines)
    assert max(math.hypot(m.pos.x - 30, m.pos.y - 30) for m in marines) < 3


def test_following_a_unit(offline):
    offline.arena((MARINE, 1, 20, 20), (MARINE, 1, 30, 20))
    leader, follower = offline.units(MARINE)
    offline.act(command(leader, MOVE, (20, 40)), command(follower, SMART, target=leader))
    offline.step(300)
    leader, follower = offline.units(MARINE)
    assert apart(leader, follower) == pytest.approx(0.75, abs=0.01)
    assert follower.orders[0].target_unit_tag == leader.tag


def test_nobody_leaves_the_playable_area(offline):
    offline.arena((MARINE, 1, 20, 20))
    assert offline.order(offline.one(MARINE), MOVE, (1, 63)) == 1
    offline.step(400)
    (marine,) = offline.units(MARINE)
    assert (marine.pos.x, marine.pos.y) == (8, 56)
