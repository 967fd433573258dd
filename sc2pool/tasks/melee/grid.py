"""Grids of the map's description as arrays; what a message lacks is 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2


def bits_of(grid: common_pb2.ImageData) -> NDArray[np.bool_]:
    """A grid of true and false, as (y, x).

    Newer versions of the game have a bit for each cell, older ones a byte, and begin at the top.
    """
    if grid.bits_per_pixel == 8:
        return np.flipud(bytes_of(grid)).astype(np.bool_)
    return _shaped(np.unpackbits(np.frombuffer(grid.data, dtype=np.uint8)), grid).astype(np.bool_)


def walkable_of(pathing: common_pb2.ImageData) -> NDArray[np.bool_]:
    """Where units can walk, as (y, x); older versions of the game tell where they cannot."""
    cells = bits_of(pathing)
    return ~cells if pathing.bits_per_pixel == 8 else cells


def bytes_of(grid: common_pb2.ImageData) -> NDArray[np.uint8]:
    """A grid of one byte per cell, as (y, x)."""
    return _shaped(np.frombuffer(grid.data, dtype=np.uint8), grid)


def _shaped(cells: NDArray[np.uint8], grid: common_pb2.ImageData) -> NDArray[np.uint8]:
    whole = np.zeros(max(grid.size.x, 0) * max(grid.size.y, 0), dtype=np.uint8)
    known = min(cells.size, whole.size)
    whole[:known] = cells[:known]
    return whole.reshape(max(grid.size.y, 0), max(grid.size.x, 0))
