"""The cells of a map: free, blocked by the ground, or by the structure or resource on them.

Cells are numbered row by row, with a border of blocked cells around the map, so that each cell has
eight neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sc2standin.data.unit_types import UnitType
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import Point, Unit
from sc2standin.simulation.world import World

FREE, NO_GROUND = 0, -1
NEAR_CELLS = 12
"""How far around a blocked cell a free one is looked for."""


class Cells:
    """The cells of a map without structures and resources.

    Attributes:
        row: how many cells a row has, with the border.
        cells: FREE, NO_GROUND, or the tag of the unit that stands on the cell.
    """

    def __init__(self, terrain: Terrain) -> None:
        self._terrain = terrain
        self.row = terrain.width + 2
        border = [NO_GROUND] * self.row
        self.cells = list(border)
        for line in terrain.open_cells.tolist():
            kinds = (FREE if is_open else NO_GROUND for is_open in line)
            self.cells += [NO_GROUND, *kinds, NO_GROUND]
        self.cells += border

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

    def free_until(self, start: Point, end: Point, ignored: int = FREE) -> Point:
        """The end of a straight line, or the last point of it before a blocked cell.

        The cell of the start does not count, nor do those under the unit with the ignored tag.
        """
        cells, row = self.cells, self.row
        (x0, y0), (x1, y1) = start, end
        way_x, way_y = x1 - x0, y1 - y0
        step_x, step_y = (1 if way_x > 0 else -1), (1 if way_y > 0 else -1)
        cell = self.at(x0, y0)
        # Shares of the line at which it crosses into the next column and the next row.
        share_x = ((math.floor(x0) + (step_x > 0)) - x0) / way_x if way_x else math.inf
        share_y = ((math.floor(y0) + (step_y > 0)) - y0) / way_y if way_y else math.inf
        every_x = abs(1.0 / way_x) if way_x else math.inf
        every_y = abs(1.0 / way_y) if way_y else math.inf
        left = abs(math.floor(x1) - math.floor(x0)) + abs(math.floor(y1) - math.floor(y0))
        share = 0.0
        while left > 0:
            if abs(share_x - share_y) < 1e-9 and left > 1:  # through a corner: both sides are free
                sides = cells[cell + step_x], cells[cell + step_y * row]
                if any(side not in (FREE, ignored) for side in sides):
                    break
                share = share_x
                cell += step_x + step_y * row
                share_x += every_x
                share_y += every_y
                left -= 2
            elif share_x < share_y:
                share = share_x
                cell += step_x
                share_x += every_x
                left -= 1
            else:
                share = share_y
                cell += step_y * row
                share_y += every_y
                left -= 1
            if not 0 <= cell < len(cells) or cells[cell] not in (FREE, ignored):
                break
        else:
            return end
        # A little before the edge, so that the point belongs to the cell before it.
        share = max(0.0, share - 1e-3 / max(abs(way_x), abs(way_y)))
        return x0 + way_x * share, y0 + way_y * share


class Blocks(Cells):
    """The blocked cells of one episode.

    Attributes:
        version: changes when `cells` does.
    """

    def __init__(self, world: World, terrain: Terrain) -> None:
        super().__init__(terrain)
        self._world, self._ground = world, self.cells
        self.version = 0
        self._population_version = -1
        self._standing: list[tuple[Unit, UnitType]] = []

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
