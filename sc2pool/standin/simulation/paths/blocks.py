"""The cells of a map: free, blocked by the ground, or by the structure or resource on them.

Cells are numbered row by row, with a border of blocked cells around the map, so that each cell has
eight neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sc2pool.standin.data.unit_types import UnitType
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import Point, Unit, World

FREE, NO_GROUND = 0, -1
NEAR_CELLS = 12
"""How far around a blocked cell a free one is looked for."""


class Blocks:
    """The blocked cells of one episode.

    Attributes:
        row: how many cells a row has, with the border.
        cells: FREE, NO_GROUND, or the tag of the unit that stands on the cell.
        version: changes when `cells` does.
    """

    def __init__(self, world: World, terrain: Terrain) -> None:
        self._world, self._terrain = world, terrain
        self.row = terrain.width + 2
        self._ground = self._empty()
        self.cells = self._ground
        self.version = 0
        self._population_version = -1
        self._standing: list[tuple[Unit, UnitType]] = []

    def _empty(self) -> list[int]:
        border = [NO_GROUND] * self.row
        cells = list(border)
        for line in self._terrain.open_cells.tolist():
            cells += [NO_GROUND, *(FREE if is_open else NO_GROUND for is_open in line), NO_GROUND]
        return cells + border

    def update(self) -> bool:
        """Notice what was built or destroyed; True if the cells have changed."""
        if self._population_version == self._world.population_version:
            return False
        self._population_version = self._world.population_version
        standing = [(unit, unit.type) for unit in self._world.units if unit.type.blocks]
        if standing == self._standing:
            return False
        self._standing = standing
        self.cells = self._ground.copy()
        for unit, kind in standing:
            for cell in self.under(kind, unit.x, unit.y):
                if self.cells[cell] == FREE:
                    self.cells[cell] = unit.tag
        self.version += 1
        return True

    def under(self, kind: UnitType, x: float, y: float) -> Iterator[int]:
        """The cells on which a unit of this type blocks the way."""
        for column, row in cells_under(kind, x, y):
            yield self.at(column, row)

    def at(self, x: float, y: float) -> int:
        """The cell of a point; points off the map belong to the border."""
        column = min(max(math.floor(x), -1), self._terrain.width)
        row = min(max(math.floor(y), -1), self._terrain.height)
        return (row + 1) * self.row + column + 1

    def middle(self, cell: int) -> Point:
        """The middle of a cell."""
        row, column = divmod(cell, self.row)
        return column - 0.5, row - 0.5

    def free_cell(self, x: float, y: float) -> int:
        """The free cell nearest to a point; the point's own cell if there is none near it."""
        own = self.at(x, y)
        if self.cells[own] == FREE:
            return own
        best, least = own, math.inf
        for ring in range(1, NEAR_CELLS + 1):
            if ring - 1 > least:  # all cells of this ring are farther away than the best
                break
            for dx, dy in _ring(ring):
                cell = self.at(x + dx, y + dy)
                if self.cells[cell] == FREE:
                    middle_x, middle_y = self.middle(cell)
                    distance = math.hypot(middle_x - x, middle_y - y)
                    if distance < least:
                        best, least = cell, distance
        return best

    def free_point(self, x: float, y: float) -> Point:
        """The point itself if its cell is free, else the middle of the nearest free cell."""
        cell = self.free_cell(x, y)
        return (x, y) if cell == self.at(x, y) else self.middle(cell)


def cells_under(kind: UnitType, x: float, y: float) -> Iterator[tuple[int, int]]:
    """The cells (column, row) that a structure or resource blocks: a large one has no corners."""
    half_x, half_y = kind.footprint
    columns = range(round(x - half_x), round(x + half_x))
    rows = range(round(y - half_y), round(y + half_y))
    for row in rows:
        for column in columns:
            corner = row in (rows[0], rows[-1]) and column in (columns[0], columns[-1])
            if not (corner and half_x > 2.0):
                yield column, row


def _ring(size: int) -> Iterator[tuple[int, int]]:
    """The offsets of a square's edge."""
    for step in range(-size, size + 1):
        yield step, -size
        yield step, size
    for step in range(1 - size, size):
        yield -size, step
        yield size, step
