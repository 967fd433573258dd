"""The map's grids, as SMAC reads them."""

from __future__ import annotations

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.teams.smac.ground import Ground


def described(bits_per_pixel: int, grid: bytes) -> sc_pb.ResponseGameInfo:
    info = sc_pb.ResponseGameInfo()
    raw = info.start_raw
    raw.map_size.x = raw.map_size.y = 8
    raw.playable_area.p1.x, raw.playable_area.p1.y = 8, 6
    raw.pathing_grid.bits_per_pixel = bits_per_pixel
    raw.pathing_grid.data = grid
    raw.terrain_height.bits_per_pixel = 8
    raw.terrain_height.data = bytes(range(64))
    for one in (raw.pathing_grid, raw.terrain_height):
        one.size.x = one.size.y = 8
    return info


def test_a_bit_per_cell():
    ground = Ground.of(described(1, bytes([0b10000000] + [0] * 6 + [0b00000001])))
    assert ground.playable == (8, 6)
    assert ground.walkable[0, 0]
    assert ground.walkable[7, 7]
    assert ground.walkable.sum() == 2


def test_a_byte_per_cell_is_turned_over_and_0_is_ground():
    cells = np.full((8, 8), 255, np.uint8)
    cells[0, 3] = 0  # the top row
    ground = Ground.of(described(8, cells.tobytes()))
    assert np.argwhere(ground.walkable).tolist() == [[3, 7]]


def test_heights_are_turned_over():
    ground = Ground.of(described(1, bytes(8)))
    assert ground.height[1, 0] == 57 / 255


def test_outside_no_unit_can_move_but_it_looks_like_ground(ground):
    corner = np.array([(0.2, 23.6)])
    assert ground.can_move(corner, 2).tolist() == [[False, True, True, True]]
    assert ground.walkable_around(corner, 2).tolist() == [
        # North, south, east, west; north-east, south-west, south-east, north-west.
        [False, True, True, True, False, True, True, True]
    ]
    assert ground.height_around(corner, 2)[0, [2, 3, 8]].tolist() == [0.5, 1.0, 0.5]


def test_half_a_turn():
    ground = Ground.of(described(1, bytes([0b11000000] + [0] * 7)))
    assert np.argwhere(ground.walkable).tolist() == [[0, 0], [1, 0]]
    turned = ground.turned()
    assert np.argwhere(turned.walkable).tolist() == [[6, 7], [7, 7]]
    assert turned.height[7, 7] == ground.height[0, 0]
    assert np.array_equal(turned.turned().height, ground.height)
