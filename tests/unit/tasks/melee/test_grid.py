"""Grids: bits and bytes, whole or cut short."""

from __future__ import annotations

from s2clientprotocol import common_pb2

from sc2pool.tasks.melee.grid import bits_of, bytes_of, walkable_of


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
