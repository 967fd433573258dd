"""Directions, the playable area, bearings, and grids: bits and bytes, whole or cut short."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.minigames.geometry import (
    DIRECTIONS,
    N_DIRECTIONS,
    PlayableArea,
    bearings,
    bits_of,
    bytes_of,
    nearest_direction,
    walk_target,
    walkable_of,
)


def test_directions_are_the_compass():
    east, north, west, south = (DIRECTIONS[k] for k in (0, 2, 4, 6))
    assert east == pytest.approx((1, 0))
    assert north == pytest.approx((0, 1))
    assert west == pytest.approx((-1, 0))
    assert south == pytest.approx((0, -1))
    assert all(math.hypot(*direction) == pytest.approx(1) for direction in DIRECTIONS)


@pytest.mark.parametrize("direction", range(N_DIRECTIONS))
@pytest.mark.parametrize("turn", [-0.3, 0.0, 0.3])
def test_nearest_direction_inverts_the_table(direction, turn):
    angle = math.atan2(*reversed(DIRECTIONS[direction])) + turn
    assert nearest_direction(math.cos(angle), math.sin(angle)) == direction


def test_nearest_direction_of_nothing_is_a_direction():
    assert nearest_direction(0.0, 0.0) == 0


def test_a_walk_in_the_open_goes_straight(area):
    x, y = area.centre
    for direction, (step_x, step_y) in enumerate(DIRECTIONS):
        target_x, target_y = walk_target(x, y, direction, area)
        assert nearest_direction(target_x - x, target_y - y) == direction
        # Far enough not to be reached within a step: a marine covers 1.125 in 8 loops.
        assert math.hypot(target_x - x, target_y - y) > 2
        assert (target_x - x) * step_x + (target_y - y) * step_y > 2


def test_a_walk_never_leaves_the_area(area):
    beyond = [(area.left - 9, area.top + 9), (area.right + 9, area.bottom)]
    corners = itertools.product((area.left, area.right), (area.bottom, area.top))
    for (x, y), direction in itertools.product([*corners, *beyond], range(N_DIRECTIONS)):
        target_x, target_y = walk_target(x, y, direction, area)
        assert area.left <= target_x <= area.right
        assert area.bottom <= target_y <= area.top


def test_a_walk_against_a_wall_slides_along_it(area):
    north_east = 1
    x, y = walk_target(area.right, area.centre[1], north_east, area)
    assert x == area.right
    assert y > area.centre[1] + 1


def test_relative_position(area):
    assert area.relative(*area.centre) == (0, 0)
    assert area.relative(area.right, area.bottom) == pytest.approx((1, -20 / 24))
    assert area.relative(1e9, -1e9) == (1, -1)


def test_an_area_that_is_not_told_still_has_a_size():
    area = PlayableArea.of(sc_pb.ResponseGameInfo())
    assert area.longer_side == 1
    assert area.relative(3, -3) == (1, -1)


def test_bearings():
    targets = np.array([[4.0, 5.0], [1.0, 1.0], [1.0, 101.0]])
    result = bearings(1.0, 1.0, targets, 10.0)
    assert result.dtype == np.float32
    assert result[0] == pytest.approx([0.6, 0.8, 0.5])
    assert result[1].tolist() == [0, 0, 0], "a target that is reached has no direction"
    assert result[2].tolist() == [0, 1, 1], "distances are capped"
    assert bearings(0.0, 0.0, np.empty((0, 2)), 10.0).shape == (0, 3)


def test_the_areas_of_real_maps(recorded):
    for info, seen in recorded:
        area = PlayableArea.of(info)
        assert area.longer_side >= 100, info.map_name
        own = next(unit for unit in seen.observation.raw_data.units if unit.alliance == 1)
        assert area.clamp(own.pos.x, own.pos.y) == (own.pos.x, own.pos.y)


def test_bits_and_bytes():
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=8, y=2), data=b"\x80\x01")
    assert bits_of(grid).tolist() == [[True] + [False] * 7, [False] * 7 + [True]]
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=2, y=2), data=b"\x01\x02\x03\x04\x05")
    assert bytes_of(grid).tolist() == [[1, 2], [3, 4]]


def test_older_versions_have_bytes_from_the_top_and_tell_where_units_cannot_walk():
    size = common_pb2.Size2DI(x=2, y=2)
    grid = common_pb2.ImageData(size=size, bits_per_pixel=8, data=b"\xff\x00\x00\x00")
    assert bits_of(grid).tolist() == [[False, False], [True, False]]
    assert walkable_of(grid).tolist() == [[True, True], [False, True]]
    grid = common_pb2.ImageData(size=size, bits_per_pixel=1, data=b"\x80")
    assert walkable_of(grid).tolist() == bits_of(grid).tolist() == [[True, False], [False, False]]


def test_missing_bytes_are_zero():
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=4, y=2), data=b"\xff")
    assert bytes_of(grid).tolist() == [[255, 0, 0, 0], [0] * 4]
    assert bits_of(common_pb2.ImageData()).shape == (0, 0)
