"""Ways around cliffs: the next point of the shortest way from cell to cell.

Ways are found once for each pair of cells and kept, also from one episode to the next, so a unit's
way costs one look into a table. Only maps with cliffs between walkable places have a `Detours`.

Rules it keeps: a diagonal step has both cells at its corner free, so no unit cuts a corner; what is
kept changes no way, only the time to find it.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from math import ceil, hypot, inf, sqrt

from sc2pool.standin.data.scenario import Scenario
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import Point

Cell = tuple[int, int]
_STRAIGHT = [(1, 0), (-1, 0), (0, 1), (0, -1)]
_DIAGONAL = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
_SAMPLES_PER_CELL = 4
"""Points of a straight way that are checked for each cell of its length."""
_MARGIN = 0.2
"""Distance to both sides of a straight way that must be free, in cells."""


MOST_WAYS = 50_000
"""Largest table of ways, about 10 MB; a full one is begun anew."""


@lru_cache(maxsize=2)
def detours_on(scenario: Scenario) -> Detours:
    """The ways of a map; they are kept for its next episode."""
    return Detours(Terrain(scenario))


class Detours:
    """The ways of one map."""

    def __init__(self, terrain: Terrain) -> None:
        self._terrain = terrain
        self._lengths: dict[Cell, dict[Cell, float]] = {}
        """By goal: the length of the way from each cell."""
        self._next: dict[tuple[Cell, Cell], Point | None] = {}
        """By two cells, which may be cliffs: the point to walk to; None for the goal itself."""

    def next_point(self, x: float, y: float, goal_x: float, goal_y: float) -> Point:
        """The point to walk to from (x, y) on the way to a goal."""
        pair = (int(x), int(y)), (int(goal_x), int(goal_y))
        if pair not in self._next:
            if len(self._next) >= MOST_WAYS:
                self._next.clear()
                self._lengths.clear()
            self._next[pair] = self._find(self._open_cell(pair[0]), self._open_cell(pair[1]))
        return self._next[pair] or (goal_x, goal_y)

    def _open_cell(self, cell: Cell) -> Cell:
        """The cell itself, or if no unit can walk there the nearest one."""
        x, y = self._terrain.nearest_ground(cell[0] + 0.5, cell[1] + 0.5)
        return int(x), int(y)

    def _find(self, cell: Cell, goal: Cell) -> Point | None:
        """The farthest point on the way that is straight ahead."""
        if self._is_clear(cell, goal):
            return None
        if goal not in self._lengths:
            self._lengths[goal] = self._measure(goal)
        lengths = self._lengths[goal]
        if cell not in lengths:
            return None  # there is no way: walk to the cliff
        ahead = step = min(self._neighbours(cell), key=lambda pair: pair[1] + lengths[pair[0]])[0]
        while step != goal and self._is_clear(cell, step):
            ahead = step
            step = min(self._neighbours(step), key=lambda pair: pair[1] + lengths[pair[0]])[0]
        return ahead[0] + 0.5, ahead[1] + 0.5

    def _measure(self, goal: Cell) -> dict[Cell, float]:
        """The length of the shortest way to a goal, from each cell that has one."""
        lengths = {goal: 0.0}
        heap = [(0.0, goal)]
        while heap:
            length, cell = heappop(heap)
            if length > lengths[cell]:
                continue
            for neighbour, distance in self._neighbours(cell):
                if length + distance < lengths.get(neighbour, inf):
                    lengths[neighbour] = length + distance
                    heappush(heap, (length + distance, neighbour))
        return lengths

    def _neighbours(self, cell: Cell) -> list[tuple[Cell, float]]:
        x, y = cell
        found = [((x + i, y + j), 1.0) for i, j in _STRAIGHT if self._is_open(x + i, y + j)]
        return found + [
            ((x + i, y + j), sqrt(2.0))
            for i, j in _DIAGONAL
            if self._is_open(x + i, y + j) and self._is_open(x + i, y) and self._is_open(x, y + j)
        ]

    def _is_open(self, x: int, y: int) -> bool:
        return self._terrain.walkable(x + 0.5, y + 0.5)

    def _is_clear(self, cell: Cell, goal: Cell) -> bool:
        """True if a unit can walk straight from the middle of one cell to that of another."""
        x, y = cell[0] + 0.5, cell[1] + 0.5
        way_x, way_y = goal[0] - cell[0], goal[1] - cell[1]
        length = hypot(way_x, way_y)
        if length == 0.0:
            return True
        side_x, side_y = -way_y / length * _MARGIN, way_x / length * _MARGIN
        samples = ceil(length * _SAMPLES_PER_CELL)
        shares = [i / samples for i in range(samples + 1)]
        return all(
            self._terrain.walkable(x + way_x * share + side, y + way_y * share + side_of_y)
            for share in shares
            for side, side_of_y in ((side_x, side_y), (-side_x, -side_y))
        )
