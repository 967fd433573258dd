"""The ground: flat, and open everywhere inside the playable area.

Grids have the real game's layout: row by row from the bottom, with one byte per cell, or one bit
per cell with the first cell in the highest bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sc2pool.standin.data.scenario import Scenario

GROUND_HEIGHT_BYTE = 223
"""The height of the ground in the terrain grid."""
GROUND_Z = -16.0 + GROUND_HEIGHT_BYTE * 32.0 / 255.0
"""The same height as the z coordinate of units."""

HIDDEN, FOGGED, VISIBLE = 0, 1, 2


class Terrain:
    """The size of the map and its playable area."""

    def __init__(self, scenario: Scenario) -> None:
        self.width, self.height = scenario.size
        self.area = scenario.playable_area
        self.x0, self.y0, self.x1, self.y1 = self.area
        self.low = np.array([self.x0, self.y0], dtype=np.float64)
        self.high = np.array([self.x1, self.y1], dtype=np.float64)

    @cached_property
    def open_cells(self) -> NDArray[np.bool_]:
        """The cells of the playable area, as (y, x)."""
        cells = np.zeros((self.height, self.width), dtype=np.bool_)
        cells[self.y0 : self.y1, self.x0 : self.x1] = True
        return cells

    @cached_property
    def open_bits(self) -> bytes:
        """The pathing grid, which is also the placement grid of empty ground; one bit per cell."""
        return np.packbits(self.open_cells).tobytes()

    @cached_property
    def height_bytes(self) -> bytes:
        """The terrain height, the same everywhere; one byte per cell."""
        return bytes([GROUND_HEIGHT_BYTE]) * (self.width * self.height)

    @cached_property
    def creep_bits(self) -> bytes:
        """The creep grid, empty; one bit per cell."""
        return bytes(self.width * self.height // 8)

    @cached_property
    def lit_bytes(self) -> bytes:
        """The visibility grid of a map without fog; one byte per cell."""
        return bytes([VISIBLE]) * (self.width * self.height)

    def on_map(self, x: float, y: float) -> bool:
        """True if the point is on the map (False for NaN)."""
        return 0 <= x <= self.width and 0 <= y <= self.height

    def walkable(self, x: float, y: float) -> bool:
        """True if the point is in the playable area."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def clamp(self, x: float, y: float) -> tuple[float, float]:
        """The walkable point nearest to (x, y)."""
        if self.walkable(x, y):
            return x, y
        return min(max(x, self.x0), self.x1), min(max(y, self.y0), self.y1)

    def seen_from(self, eyes: Iterable[tuple[float, float, float]]) -> NDArray[np.bool_]:
        """The cells within sight of at least one eye, as (y, x); an eye is x, y and its reach."""
        y, x = np.ogrid[0.5 : self.height, 0.5 : self.width]
        seen = np.zeros((self.height, self.width), dtype=np.bool_)
        for eye_x, eye_y, reach in eyes:
            seen |= (x - eye_x) ** 2 + (y - eye_y) ** 2 <= reach * reach
        return seen
