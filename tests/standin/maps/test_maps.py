"""The maps of the mini-games: their units, scores, further waves of units, and ends."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import apart

MOVE = 16
MARINE, ROACH, ZERGLING, BANELING, BEACON, SHARD = 48, 110, 105, 9, 317, 1680
FIND, DEFEAT = "FindAndDefeatZerglings", "DefeatZerglingsAndBanelings"


def test_beacon_scores_and_moves_at_least_five_away(offline):
    offline.start("MoveToBeacon")
    for expected in range(1, 6):
        (beacon,), (marine,) = offline.units(BEACON), offline.units(MARINE)
        assert beacon.alliance == raw_pb.Neutral
        assert beacon.radius == 2.5
        assert apart(beacon, marine) >= 5
        assert 23.5 <= beacon.pos.x <= 42.5
        assert 21.5 <= beacon.pos.y <= 34.5
        assert math.hypot(beacon.pos.x - 33, beacon.pos.y - 28) >= 4
        assert offline.order(marine, MOVE, (beacon.pos.x, beacon.pos.y)) == 1
        while offline.observe().score.score < expected:
            offline.step()
        assert 1 < apart(beacon, offline.units(MARINE)[0]) <= 1.25
    assert offline.units(BEACON)[0].tag == beacon.tag


def test_shards_vanish_and_come_back_by_twenty(offline):
    offline.start("CollectMineralShards")
    marines = offline.units(MARINE)
    assert len(marines) == 2
    shards = offline.units(SHARD)
    assert len(shards) == 20
    assert all(apart(s, m) >= 2 for s in shards for m in marines)
    assert all(23 <= s.pos.x <= 43 and 21 <= s.pos.y <= 35 for s in shards)
    score, gone = 0, []
    while score < 20:
        shards = offline.units(SHARD)
        assert len(shards) == 20 - score
        target = min(shards, key=lambda shard: apart(shard, marines[0]))
        offline.order(marines[0], MOVE, (target.pos.x, target.pos.y))
        offline.step(4)
        seen = offline.observe()
        gone += seen.raw_data.event.dead_units
        score = seen.score.score
        assert seen.player_common.minerals == 100 * score
        marines = [u for u in seen.raw_data.units if u.unit_type == MARINE]
    assert len(set(gone)) == score
    fresh = offline.units(SHARD)
    assert len(fresh) == 20
    assert not {shard.tag for shard in fresh} & set(gone)


def test_a_marine_that_came_after_the_shards_takes_them(offline):
    offline.start("CollectMineralShards")
    shard = offline.units(SHARD)[0]
    offline.create((MARINE, 1, shard.pos.x, shard.pos.y))
    assert not offline.step().error
    assert shard.tag in offline.observe().raw_data.event.dead_units


def test_roaches_score_ten_marines_minus_one_and_waves_follow(offline):
    offline.start("DefeatRoaches")
    marines, roaches = offline.units(MARINE), offline.units(ROACH)
    assert (len(marines), len(roaches)) == (9, 4)
    assert {r.owner for r in roaches} == {2}
    assert {r.alliance for r in roaches} == {raw_pb.Enemy}
    assert abs(marines[0].pos.x - roaches[0].pos.x) > 10
    for column in (marines, roaches):
        assert len({unit.pos.x for unit in column}) == 1
        ys = [unit.pos.y for unit in column]
        assert all(after - y == pytest.approx(1) for y, after in pairwise(ys))
    killed = [marines[0].tag, roaches[0].tag, roaches[1].tag]
    offline.kill(killed)
    assert len(offline.units(MARINE)) == 9  # a kill takes effect with the next loop
    offline.step()
    seen = offline.observe()
    assert seen.score.score == 19
    assert set(seen.raw_data.event.dead_units) == set(killed)
    assert not offline.observe().raw_data.event.dead_units
    killed = [roaches[2].tag, roaches[3].tag]
    offline.kill(killed)
    offline.step()
    assert (len(offline.units(MARINE)), len(offline.units(ROACH))) == (13, 4)
    assert offline.observe().score.score == 39
    anew = offline.units(MARINE)
    assert len({marine.pos.x for marine in anew}) == 1
    assert not {marine.tag for marine in anew} & {marine.tag for marine in marines}
    details = offline.observe().score.score_details
    assert (details.killed_value_units, details.lost_minerals.army) == (400, 50)


def _places(session, kind: str) -> list[tuple[float, float]]:
    """The places of all units of a type, even of units that no client sees."""
    return [(u.x, u.y) for u in session.state.game.world.units if u.type.name == kind]


def _least(places, others) -> float:
    return min(math.dist(a, b) for a in places for b in others if a is not b)


@pytest.mark.parametrize("seed", range(5))
def test_zerglings_are_scattered_around_the_marines(offline, seed):
    offline.start(FIND, seed=seed)
    marines, zerglings = _places(offline, "Marine"), _places(offline, "Zergling")
    assert (len(marines), len(zerglings)) == (3, 25)
    assert [math.dist(place, (32, 28)) for place in marines] == pytest.approx([1, 1, 1])
    from_centre = [math.dist(place, (32, 28)) for place in zerglings]
    assert 8 <= from_centre[0] <= 9
    assert 7.5 <= from_centre[1] <= 9.5
    assert min(from_centre[2:]) >= 10.5
    scattered = zerglings[2:]
    assert _least(scattered, zerglings) >= 5
    assert all(11 <= x <= 53 and 13 <= y <= 43 for x, y in scattered)


def test_new_zerglings_come_when_all_are_dead(offline):
    offline.start(FIND)
    before = [unit.tag for unit in offline.units(MARINE)]
    world = offline.state.game.world
    offline.kill([unit for unit in world.units if unit.type.name == "Zergling"][:24])
    offline.step()
    assert offline.observe().score.score == 24
    assert len(_places(offline, "Zergling")) == 1
    offline.kill(unit for unit in world.units if unit.type.name == "Zergling")
    offline.kill(before[:1])
    offline.step()
    zerglings = _places(offline, "Zergling")
    assert len(zerglings) == 25
    assert _least(zerglings, _places(offline, "Marine")) >= 9
    assert _least(zerglings, zerglings) >= 5
    assert offline.observe().score.score == 24
    assert [unit.tag for unit in offline.units(MARINE)] == before[1:]


def test_only_what_the_marines_see_is_shown(offline):
    offline.start(FIND)
    marines, seen = _places(offline, "Marine"), offline.units(ZERGLING)
    assert 0 < len(seen) < 25
    for unit in seen:
        assert _least([(unit.pos.x, unit.pos.y)], marines) < 9 + 1


@pytest.mark.parametrize("seed", range(5))
def test_two_columns_face_each_other(offline, seed):
    offline.start(DEFEAT, seed=seed)
    marines, zerglings = _places(offline, "Marine"), _places(offline, "Zergling")
    banelings = _places(offline, "Baneling")
    assert list(map(len, (marines, zerglings, banelings))) == [9, 6, 4]
    assert len(set(banelings)) == 1
    for column in (marines, zerglings):
        assert len({x for x, _ in column}) == 1
        ys = [y for _, y in column]
        assert np.diff(ys) == pytest.approx(1.0)
    assert sum(y for _, y in zerglings) / 6 == pytest.approx(banelings[0][1])
    left, right = sorted((marines[0][0], zerglings[0][0]))
    assert 23.97 <= left <= 27.98
    assert 38.02 <= right <= 42.04


def test_survivors_rejoin_the_next_wave(offline):
    offline.start(DEFEAT)
    enemies = offline.units(ZERGLING) + offline.units(BANELING)
    marines = offline.units(MARINE)
    world = offline.state.game.world
    world.by_tag[marines[3].tag].life = 7.0
    offline.kill(enemies)
    offline.kill(marines[0])
    offline.step()
    seen = offline.observe()
    assert seen.score.score == 10 * 5 - 1
    assert set(seen.raw_data.event.dead_units) == {marines[0].tag, *(u.tag for u in enemies)}
    anew = offline.units(MARINE)
    assert sorted(unit.health for unit in anew) == [7] + 11 * [45]
    assert not {unit.tag for unit in anew} & {unit.tag for unit in marines}
    assert len(offline.units(ZERGLING)) == 6
    assert len(offline.units(BANELING)) == 4


@pytest.mark.parametrize("name", ["MoveToBeacon", "CollectMineralShards", "DefeatRoaches"])
def test_the_area_is_the_real_maps_and_the_end_at_its_time(offline, name):
    offline.start(name)
    start = offline.game_info().start_raw
    area = start.playable_area
    assert (start.map_size.x, start.map_size.y) == (64, 64)
    assert (area.p0.x, area.p0.y, area.p1.x, area.p1.y) == (22, 20, 44, 36)
    camera = offline.observe().raw_data.player.camera
    assert (camera.x, camera.y) == (33, 25)
    assert offline.step(1919).status == sc_pb.in_game
    assert offline.step().status == sc_pb.ended
    ended = offline.observed()
    assert ended.observation.game_loop == 1920
    assert [(r.player_id, r.result) for r in ended.player_result] == [(1, sc_pb.Victory)]
    later = offline.observed()
    assert not later.player_result
    assert later.observation == ended.observation


@pytest.mark.parametrize("seeds", [range(4), [None] * 4], ids=["given", "unset"])
@pytest.mark.parametrize(
    "name",
    [
        *("MoveToBeacon", "CollectMineralShards", "DefeatRoaches", "DefeatZerglingsAndBanelings"),
        "SMAC_Maps/3m",
    ],
)
def test_seeds_differ(session_for, name, seeds):
    layouts = set()
    for seed in seeds:
        session = session_for()
        session.start(name, seed=seed)
        layouts.add(session.observe().SerializeToString())
    assert len(layouts) == 4


def test_nobody_loses_on_an_endless_map(offline):
    offline.arena((MARINE, 1, 20, 20), endless=True)
    offline.kill(offline.units(MARINE))
    assert offline.step(10).status == sc_pb.in_game
    assert not offline.units(MARINE)
    offline.create((MARINE, 1, 20, 20))
    assert len(offline.units(MARINE)) == 1


def test_losing_all_units_ends_the_episode(offline):
    offline.start("DefeatRoaches")
    offline.kill(offline.units(MARINE))
    stepped = offline.step(50)
    assert (stepped.step.simulation_loop, stepped.status) == (1, sc_pb.ended)
    ended = offline.observed()
    assert ended.player_result[0].result == sc_pb.Defeat
    assert ended.observation.score.score == -9
