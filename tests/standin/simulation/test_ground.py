"""Creep, and what blocks a place for a structure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from s2clientprotocol import error_pb2 as error_pb

from sc2standin.simulation.rules.creep import SPREAD_LOOPS

BUILD_DEPOT, LAND_BARRACKS = 319, 554
TUMOR, OVERLORD, MARINE, OBSERVER, SCV, FLYING_BARRACKS = 87, 106, 48, 82, 45, 46
MIDDLE = 44.5, 48.5
REACH, SPREAD_OVER = 10, 20 * SPREAD_LOOPS


def _creep(session) -> np.ndarray:
    """The cells with creep that the client knows of, as (x, y) of their middles."""
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
    assert full[:, 0].min() == 8.5  # the edge of the playable area
    offline.kill(offline.units(TUMOR))
    offline.step(SPREAD_LOOPS)
    assert 0 < len(_creep(offline)) < len(full)
    offline.step(SPREAD_OVER)
    assert not len(_creep(offline))


def test_a_client_knows_of_the_creep_that_it_has_seen(field):
    field.create((TUMOR, 2, *MIDDLE))
    field.step(SPREAD_OVER)
    assert not len(_creep(field))
    field.create((MARINE, 1, 34, 48))
    seen = _creep(field)
    assert 0 < len(seen) < 200
    assert all(math.dist(cell, (34, 48)) <= 9 for cell in seen)
    field.kill(field.units(MARINE))
    field.step(2)
    assert np.array_equal(_creep(field), seen)


def test_an_observation_without_fog_has_all_creep(field):
    field.create((TUMOR, 2, *MIDDLE))
    field.step(SPREAD_OVER)
    lifted = field.observed(disable_fog=True).observation
    assert any(lifted.raw_data.map_state.creep.data)
    assert not len(_creep(field))


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
    assert field.state.game.world.minerals >= 100  # it came back
    assert not any(unit.type.id == 19 for unit in field.state.game.world.units)


BUILD_CENTER = 318
CENTER, DEPOT, LOWERED, SIEGED, FLYING_BARRACKS = 18, 19, 47, 32, 46
OVERLORD, OBSERVER, ZEALOT, TEMPLAR, CHANGELING = 106, 82, 73, 76, 12
BURROWED_ROACH, BURROWED_ZERGLING, BURROWED_MINE = 118, 119, 500


def _can_place(session) -> list[int]:
    session.step(2)
    session.observe()
    return session.can_place(BUILD_CENTER, MIDDLE)


@pytest.mark.parametrize(
    ("own", "enemy"),
    [
        (OVERLORD, TEMPLAR),
        (OVERLORD, BURROWED_ROACH),
        (FLYING_BARRACKS, BURROWED_MINE),
        (OVERLORD, BURROWED_ZERGLING),
        (ZEALOT, None),
        (None, ZEALOT),
        (None, DEPOT),
        (None, TEMPLAR),
        (None, BURROWED_ROACH),
    ],
)
def test_undetected_units_do_not_block(field, own, enemy):
    field.create(*((kind, owner, *MIDDLE) for owner, kind in ((1, own), (2, enemy)) if kind))
    assert _can_place(field) == [error_pb.Success]


@pytest.mark.parametrize(
    ("own", "enemy"),
    [
        (CENTER, None),
        (SIEGED, None),
        (OVERLORD, DEPOT),
        (OVERLORD, LOWERED),
        (OVERLORD, ZEALOT),
        (OVERLORD, SIEGED),
        (OVERLORD, CHANGELING),
        (OBSERVER, TEMPLAR),
        (OBSERVER, BURROWED_ROACH),
        (OBSERVER, BURROWED_MINE),
    ],
)
def test_seen_units_that_do_not_step_aside_block(field, own, enemy):
    field.create(*((kind, owner, *MIDDLE) for owner, kind in ((1, own), (2, enemy)) if kind))
    assert _can_place(field) == [error_pb.CantBuildLocationInvalid]


def test_without_fog_only_what_is_detected_blocks(melee):
    session = melee(None, disable_fog=True)
    session.create((TEMPLAR, 2, *MIDDLE))
    assert _can_place(session) == [error_pb.Success]
    session.create((OBSERVER, 1, *MIDDLE))
    assert _can_place(session) == [error_pb.CantBuildLocationInvalid]
