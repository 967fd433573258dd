"""The ground of a map. If the map file has no ground, the playable area is flat and open.

Grids have the real game's layout: row by row from the bottom, with one byte per cell, or with one
bit per cell, the first cell in a byte's highest bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sc2standin.map_reader.fields import Point
from sc2standin.map_reader.scenario import Scenario

GROUND_HEIGHT_BYTE = 223
"""The height of flat ground in the terrain grid, as a byte."""
_INSIDE = 1e-6
"""A point that is put into a cell keeps this distance to the cell's edges, in cells."""
HIDDEN, FOGGED, VISIBLE = 0, 1, 2

Cells = NDArray[np.bool_]
"""One truth value for each cell of a map, indexed (y, x)."""


def _z(height_byte: int) -> float:
    """The z coordinate of units on ground of this height."""
    return -16.0 + height_byte * 32.0 / 255.0


GROUND_Z = _z(GROUND_HEIGHT_BYTE)
"""The z coordinate of units on flat ground."""


class Terrain:
    """The size of the map, its playable area, and the cells in it on which units can walk."""

    def __init__(self, scenario: Scenario) -> None:
        self.width, self.height = scenario.size
        self.area = scenario.playable_area
        self.x0, self.y0, self.x1, self.y1 = self.area
        self._ground = scenario.ground
        self.bounds = self.area if self._ground is None else self._walkable_bounds()
        """The smallest rectangle around all places where units can walk."""
        x0, y0, x1, y1 = self.bounds
        self.low = np.array([x0, y0], dtype=np.float64)
        self.high = np.array([x1, y1], dtype=np.float64)
        self.is_open = self._ground is None or bool(self.open_cells[y0:y1, x0:x1].all())
        """True if units can walk straight between any two points on which they can stand."""

    def _walkable_bounds(self) -> tuple[int, int, int, int]:
        rows, columns = self.open_cells.nonzero()
        return (
            int(columns.min()),
            int(rows.min()),
            int(columns.max()) + 1,
            int(rows.max()) + 1,
        )

    @cached_property
    def open_cells(self) -> Cells:
        """True for the cells of the playable area on which units can walk."""
        cells = np.zeros((self.height, self.width), dtype=np.bool_)
        cells[self.y0 : self.y1, self.x0 : self.x1] = True
        return cells if self._ground is None else cells & self._ground.walkable

    @cached_property
    def building_cells(self) -> Cells:
        """True for the cells on which structures can stand, if nothing else is there."""
        cells = self.open_cells
        return cells if self._ground is None else cells & self._ground.buildable

    @property
    def flat(self) -> bool:
        """True if the ground is the same everywhere."""
        return self._ground is None

    @cached_property
    def open_bits(self) -> bytes:
        """The pathing grid without structures and resources; one bit per cell."""
        return np.packbits(self.open_cells).tobytes()

    @cached_property
    def building_bits(self) -> bytes:
        """The placement grid; one bit per cell."""
        return np.packbits(self.building_cells).tobytes()

    @cached_property
    def height_bytes(self) -> bytes:
        """The terrain height; one byte per cell."""
        if self._ground is None:
            return bytes([GROUND_HEIGHT_BYTE]) * (self.width * self.height)
        return self._ground.height.tobytes()

    def z_at(self, x: float, y: float) -> float:
        """The z coordinate of a unit at this point."""
        if self._ground is None:
            return GROUND_Z
        column, row = min(int(x), self.width - 1), min(int(y), self.height - 1)
        return _z(self.height_bytes[row * self.width + column])

    @cached_property
    def bare_bits(self) -> bytes:
        """The creep grid without creep; one bit per cell."""
        return bytes(self.width * self.height // 8)

    @cached_property
    def lit_bytes(self) -> bytes:
        """The visibility grid of a map without fog; one byte per cell."""
        return bytes([VISIBLE]) * (self.width * self.height)

    def on_map(self, x: float, y: float) -> bool:
        """True if the point is on the map (False for NaN)."""
        return 0 <= x <= self.width and 0 <= y <= self.height

    def walkable(self, x: float, y: float) -> bool:
        """True if units can walk at the point."""
        x0, y0, x1, y1 = self.bounds
        inside = x0 <= x <= x1 and y0 <= y <= y1
        if self.is_open or not inside:
            return inside
        return bool(self.open_cells[min(int(y), y1 - 1), min(int(x), x1 - 1)])

    def clamp(self, x: float, y: float, aloft: bool = False) -> Point:
        """The nearest point of the playable area if `aloft`, else of the walkable rectangle."""
        x0, y0, x1, y1 = self.area if aloft else self.bounds
        return min(max(x, x0), x1), min(max(y, y0), y1)

    def nearest_ground(self, x: float, y: float) -> Point:
        """The point nearest to (x, y) at which a unit can stand."""
        if self.walkable(x, y):
            return x, y
        cell_y, cell_x = self.open_cells.nonzero()
        near_x = np.clip(x, cell_x + _INSIDE, cell_x + 1.0 - _INSIDE)
        near_y = np.clip(y, cell_y + _INSIDE, cell_y + 1.0 - _INSIDE)
        nearest = int(((near_x - x) ** 2 + (near_y - y) ** 2).argmin())
        return float(near_x[nearest]), float(near_y[nearest])

    def slide(self, x: float, y: float, to_x: float, to_y: float, aloft: bool) -> Point:
        """The point that a unit at (x, y) reaches; the unit slides along cliffs and edges."""
        if self.is_open or aloft or self.walkable(to_x, to_y):
            return self.clamp(to_x, to_y, aloft)
        for point in ((to_x, y), (x, to_y), (x, y)):
            if self.walkable(*point):
                return point
        return self.nearest_ground(to_x, to_y)

    def seen_from(self, eyes: Iterable[tuple[float, float, float]]) -> Cells:
        """The cells that at least one eye sees. An eye is a point (x, y) with a range in cells."""
        y, x = np.ogrid[0.5 : self.height, 0.5 : self.width]
        seen = np.zeros((self.height, self.width), dtype=np.bool_)
        for eye_x, eye_y, reach in eyes:
            # Compute only the square around the eye's circle, to save time on large maps.
            rows = slice(max(int(eye_y - reach), 0), int(eye_y + reach) + 1)
            columns = slice(max(int(eye_x - reach), 0), int(eye_x + reach) + 1)
            square = (x[:, columns] - eye_x) ** 2 + (y[rows] - eye_y) ** 2
            seen[rows, columns] |= square <= reach * reach
        return seen
