"""The ground: flat, and open everywhere inside the playable area.

Grids are laid out as the game lays them out: row by row from the bottom, one byte a cell, or one
bit a cell with the first cell in the highest bit.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sc2pool.standin.scenario import Scenario

GROUND_HEIGHT_BYTE = 223
"""The height of the ground as the terrain grid tells it."""
GROUND_Z = -16.0 + GROUND_HEIGHT_BYTE * 32.0 / 255.0
"""The same height as units tell it."""

HIDDEN, FOGGED, VISIBLE = 0, 1, 2


class Terrain:
    """The size of the map and which of it can be walked on."""

    def __init__(self, scenario: Scenario) -> None:
        self.width, self.height = scenario.size
        self.x0, self.y0, self.x1, self.y1 = scenario.playable_area
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
        """One bit a cell: the pathing grid, and the placement grid of empty ground."""
        return np.packbits(self.open_cells).tobytes()

    @cached_property
    def height_bytes(self) -> bytes:
        """One byte a cell: the terrain height, the same everywhere."""
        return bytes([GROUND_HEIGHT_BYTE]) * (self.width * self.height)

    @cached_property
    def creep_bits(self) -> bytes:
        """One bit a cell: no creep anywhere."""
        return bytes(self.width * self.height // 8)

    @cached_property
    def lit_bytes(self) -> bytes:
        """One byte a cell: the visibility grid of a map without fog."""
        return bytes([VISIBLE]) * (self.width * self.height)

    def on_map(self, x: float, y: float) -> bool:
        """Whether the point lies on the map at all (never true of NaN)."""
        return 0 <= x <= self.width and 0 <= y <= self.height

    def walkable(self, x: float, y: float) -> bool:
        """Whether the point lies in the playable area."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def clamp(self, x: float, y: float) -> tuple[float, float]:
        """The walkable point nearest to (x, y)."""
        return min(max(x, self.x0), self.x1), min(max(y, self.y0), self.y1)

    def seen_from(self, eyes: NDArray[np.float64], sight: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The cells within sight of any of the eyes, as (y, x)."""
        y, x = np.ogrid[0.5 : self.height, 0.5 : self.width]
        seen = np.zeros((self.height, self.width), dtype=np.bool_)
        for (eye_x, eye_y), reach in zip(eyes.tolist(), sight.tolist(), strict=True):
            seen |= (x - eye_x) ** 2 + (y - eye_y) ** 2 <= reach * reach
        return seen
