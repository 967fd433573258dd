"""The two maps with zerglings: what is on them, what scores, what comes next, what is seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

MARINE, ZERGLING, BANELING = 48, 105, 9
FIND, DEFEAT = "FindAndDefeatZerglings", "DefeatZerglingsAndBanelings"


def _places(session, kind: str) -> list[tuple[float, float]]:
    """Where all units of a type are, seen or not."""
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
