"""Tests walking, paths around cliffs and structures, creep, and places for structures.

Units must walk in the same way in steps of any size.
"""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from sc2standin.simulation.paths import FAR, STRAIGHT, Field
from sc2standin.simulation.rules import SPREAD_LOOPS
from tests.standin.sessions import apart, command, place_of, step_until

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
    """All orders of a request are accepted before the first one is carried out."""
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
    """If a patrol's two points are the units' own place, the units stand until the next order."""
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


SCV, DEPOT, BARRACKS = 45, 19, 21
ROW = 34
WALLS = {
    "name": "Walls",
    "size": [32, 32],
    "playable_area": [[0, 0], [32, 32]],
    "time_limit_loops": 20_000,
}


def ground(*walls: tuple[int, int, int, int]) -> list[str]:
    """A `ground` of 32 rows, with the top row first, and with walls given as (x0, y0, x1, y1)."""
    cells = [["0"] * 32 for _ in range(32)]
    for x0, y0, x1, y1 in walls:
        for x, y in product(range(x0, x1), range(y0, y1)):
            cells[y][x] = "#"
    return ["".join(row) for row in reversed(cells)]


def _cell(x: int, y: int) -> int:
    return (y + 1) * ROW + x + 1


def _cells(picture: list[str]) -> list[int]:
    border = [-1] * ROW
    cells = list(border)
    for row in reversed(picture):
        cells += [-1, *(0 if one == "0" else -1 for one in row), -1]
    return cells + border


def test_a_field_measures_the_way_around_a_wall():
    field = Field(_cells(ground((10, 0, 12, 31))), ROW, [_cell(5, 5)])
    assert field.distance(_cell(8, 5)) == 3 * STRAIGHT
    assert field.distance(_cell(7, 7)) == 14  # the path has two diagonal steps
    around = field.distance(_cell(15, 5)) / STRAIGHT
    assert 2 * 26 <= around <= 2 * 26 + 10
    closed = Field(_cells(ground((10, 0, 12, 32))), ROW, [_cell(5, 5)])
    assert closed.distance(_cell(15, 5)) == FAR
    assert field.distance(_cell(15, 5), 20 * STRAIGHT) / STRAIGHT == around  # computed above


def test_a_field_that_grows_bit_by_bit_is_the_same():
    chance = random.Random(5)
    picture = ground(*((x, y, x + 2, y + 3) for x, y in [(3, 4), (9, 1), (12, 20), (20, 9)]))
    cells = _cells(picture)
    whole, bit_by_bit = (Field(cells, ROW, [_cell(1, 1)]) for _ in range(2))
    whole.distance(_cell(31, 31))
    free = [i for i, cell in enumerate(cells) if cell == 0]
    for cell in chance.sample(free, 200):
        assert bit_by_bit.distance(cell) == whole.distance(cell)
        here, steps = cell, 0
        while step := bit_by_bit.next(here):
            assert cells[step] == 0
            here, steps = step, steps + 1
        assert here == _cell(1, 1)
        assert steps <= 64


def _walk_there(session, goal: tuple[float, float], blocked) -> float:
    """Step until the marine stands; returns the length of its path, which has no blocked cell."""
    length, before = 0.0, None
    for _ in range(1500 // 4):
        unit = session.one(MARINE)
        place = place_of(unit)
        assert not blocked(*place), place
        length += 0.0 if before is None else math.dist(before, place)
        before = place
        if not unit.orders and length:
            break
        session.step(4)
    assert math.dist(before, goal) < 0.1, before
    return length


def test_a_unit_walks_around_cliffs(offline):
    walls = (10, 0, 12, 25), (18, 7, 20, 32)
    offline.arena((MARINE, 1, 3.0, 3.0), **WALLS, ground=ground(*walls))
    assert offline.order(offline.one(MARINE), MOVE, (28.0, 28.0)) == 1
    offline.step()

    def blocked(x: float, y: float) -> bool:
        return any(x0 < x < x1 and y0 < y < y1 for x0, y0, x1, y1 in walls)

    length = _walk_there(offline, (28.0, 28.0), blocked)
    assert 65 < length < 73  # the straight line is 35 cells long, and the shortest way 68.6 cells


def test_a_unit_that_cannot_arrive_stops_as_near_as_it_can(offline):
    offline.arena((MARINE, 1, 3.0, 3.0), **WALLS, ground=ground((15, 0, 17, 32)))
    offline.order(offline.one(MARINE), MOVE, (28.0, 3.0))
    offline.step(400)
    (marine,) = offline.units(MARINE)
    assert not marine.orders
    assert 14 < marine.pos.x < 15


@pytest.mark.parametrize("order", [MOVE, ATTACK])
def test_units_walk_around_structures(offline, order):
    offline.start("BuildMarines")
    offline.create((BARRACKS, 1, 40.5, 28.5), (MARINE, 1, 37.0, 28.5))
    offline.order(offline.one(MARINE), order, (44.0, 28.5))
    offline.step()

    def blocked(x: float, y: float) -> bool:
        return abs(x - 40.5) < 1.4 and abs(y - 28.5) < 1.4

    assert 7.0 < _walk_there(offline, (44.0, 28.5), blocked) < 9.0


def test_units_step_aside_for_a_structure_and_get_out_of_one(offline):
    offline.start("BuildMarines")
    offline.state.game.world.minerals = 1000
    offline.create((MARINE, 1, 40.5, 28.5), (MARINE, 1, 41.0, 28.0))
    worker = offline.units(SCV)[0]
    assert offline.order(worker, 319, (41.0, 28.0)) == 1
    step_until(offline, lambda: offline.units(DEPOT))
    depot = offline.one(DEPOT)
    for marine in offline.units(MARINE):
        apart = max(abs(marine.pos.x - depot.pos.x), abs(marine.pos.y - depot.pos.y))
        assert apart >= 1.0


def test_random_orders_never_lead_into_a_wall(offline):
    chance = random.Random(3)
    walls = [(x, y, x + 3, y + 5) for x, y in [(4, 4), (12, 9), (20, 3), (8, 20), (22, 22)]]
    places = [(2.0, y) for y in range(2, 30, 4)]
    offline.arena(*((MARINE, 1, x, y) for x, y in places), **WALLS, ground=ground(*walls))
    for _ in range(40):
        marines = offline.units(MARINE)
        for marine in marines:
            goal = chance.uniform(0, 32), chance.uniform(0, 32)
            offline.order(marine, MOVE, goal)
        offline.step(chance.choice((1, 8, 40)))
        for marine in offline.units(MARINE):
            x, y = marine.pos.x, marine.pos.y
            assert not any(x0 < x < x1 and y0 < y < y1 for x0, y0, x1, y1 in walls), (x, y)


BUILD_DEPOT, LAND_BARRACKS = 319, 554
TUMOR, OVERLORD, OBSERVER, FLYING_BARRACKS = 87, 106, 82, 46
MIDDLE = 44.5, 48.5
REACH, SPREAD_OVER = 10, 20 * SPREAD_LOOPS


def _creep(session) -> np.ndarray:
    """The centres (x, y) of the cells on which the client knows of creep."""
    grid = session.observe().raw_data.map_state.creep
    assert grid.bits_per_pixel == 1
    bits = np.unpackbits(np.frombuffer(grid.data, dtype=np.uint8))
    rows, columns = bits.reshape(grid.size.y, grid.size.x).nonzero()
    return np.column_stack([columns + 0.5, rows + 0.5])


def test_a_tumor_spreads_creep_cell_by_cell_up_to_its_reach(offline):
    offline.arena((TUMOR, 2, 32.5, 32.5))
    assert not len(_creep(offline))
    sizes = []
    for _ in range(20):
        offline.step(SPREAD_LOOPS)
        sizes.append(len(_creep(offline)))
    assert sizes[:3] == [5, 13, 25]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[-2]
    far = [math.dist(cell, (32.5, 32.5)) for cell in _creep(offline)]
    assert max(far) == REACH
    assert len(far) == pytest.approx(math.pi * REACH**2, rel=0.05)


def test_creep_stays_on_the_ground_and_withers_without_its_tumor(offline):
    offline.arena((TUMOR, 2, 8.5, 32.5), (OBSERVER, 1, 12, 32))
    offline.step(SPREAD_OVER)
    full = _creep(offline)
    assert full[:, 0].min() == 8.5  # creep ends at the edge of the playable area
    offline.kill(offline.units(TUMOR))
    offline.step(SPREAD_LOOPS)
    assert 0 < len(_creep(offline)) < len(full)
    offline.step(SPREAD_OVER)
    assert not len(_creep(offline))


def test_a_client_knows_of_the_creep_that_it_has_seen(field):
    field.create((TUMOR, 2, *MIDDLE))
    field.step(SPREAD_OVER)
    without_fog = field.observed(disable_fog=True).observation
    assert any(without_fog.raw_data.map_state.creep.data)
    assert not len(_creep(field))
    field.create((MARINE, 1, 34, 48))
    seen = _creep(field)
    assert 0 < len(seen) < 200
    assert all(math.dist(cell, (34, 48)) <= 9 for cell in seen)
    field.kill(field.units(MARINE))
    field.step(2)
    assert np.array_equal(_creep(field), seen)


def test_structures_cannot_stand_or_land_on_creep_that_is_seen(field):
    field.create((TUMOR, 2, 44.5, 53.5))
    field.step(SPREAD_OVER)
    field.observe()
    assert field.can_place(BUILD_DEPOT, MIDDLE) == [error_pb.Success]
    field.create((OVERLORD, 1, *MIDDLE))
    assert field.can_place(BUILD_DEPOT, MIDDLE) == [error_pb.CantBuildTooCloseToCreepSource]
    assert field.can_place(BUILD_DEPOT, (44.5, 42.5)) == [error_pb.Success]


def test_orders_to_build_and_land_on_creep_are_refused(field):
    field.create((TUMOR, 2, *MIDDLE), (FLYING_BARRACKS, 1, 40, 48), (OVERLORD, 1, *MIDDLE))
    field.step(SPREAD_OVER)
    field.state.game.world.minerals = 100
    workers, barracks = field.units(SCV), field.units(FLYING_BARRACKS)
    place = (44.5, 50.5)
    assert field.order(workers[:1], BUILD_DEPOT, place) == error_pb.CantBuildTooCloseToCreepSource
    assert field.order(barracks, LAND_BARRACKS, place) == error_pb.CantLandTooCloseToCreepSource


def test_a_worker_begins_nothing_on_creep_that_it_did_not_see_before(field):
    field.create((TUMOR, 2, *MIDDLE))
    field.step(SPREAD_OVER)
    field.state.game.world.minerals = 100
    (worker, *_) = field.units(SCV)
    assert field.order(worker, BUILD_DEPOT, MIDDLE) == error_pb.Success
    field.step(1000)
    assert field.state.game.world.minerals >= 100  # the worker came back without building
    assert not any(unit.type.id == 19 for unit in field.state.game.world.units)


BUILD_CENTER = 318
CENTER, LOWERED, SIEGED = 18, 47, 32
ZEALOT, TEMPLAR, CHANGELING = 73, 76, 12
BURROWED_ROACH, BURROWED_ZERGLING, BURROWED_MINE = 118, 119, 500


def _can_place(session) -> list[int]:
    session.step(2)
    session.observe()
    return session.can_place(BUILD_CENTER, MIDDLE)


BLOCKED = {  # the enemy units that block (True) or do not block, for each own unit
    (OVERLORD, False): (TEMPLAR, BURROWED_ROACH, BURROWED_ZERGLING),
    (FLYING_BARRACKS, False): (BURROWED_MINE,),
    (None, False): (ZEALOT, DEPOT, TEMPLAR, BURROWED_ROACH),
    (OVERLORD, True): (DEPOT, LOWERED, ZEALOT, SIEGED, CHANGELING),
    (OBSERVER, True): (TEMPLAR, BURROWED_ROACH, BURROWED_MINE),
    **{(ZEALOT, False): (None,), (CENTER, True): (None,), (SIEGED, True): (None,)},
}


@pytest.mark.parametrize(
    ("own", "enemy", "blocks"),
    [(own, enemy, blocks) for (own, blocks), enemies in BLOCKED.items() for enemy in enemies],
)
def test_detected_units_that_do_not_step_aside_block(field, own, enemy, blocks):
    field.create(*((kind, owner, *MIDDLE) for owner, kind in ((1, own), (2, enemy)) if kind))
    result = error_pb.CantBuildLocationInvalid if blocks else error_pb.Success
    assert _can_place(field) == [result]


def test_without_fog_only_what_is_detected_blocks(melee):
    session = melee(None, disable_fog=True)
    session.create((TEMPLAR, 2, *MIDDLE))
    assert _can_place(session) == [error_pb.Success]
    session.create((OBSERVER, 1, *MIDDLE))
    assert _can_place(session) == [error_pb.CantBuildLocationInvalid]
