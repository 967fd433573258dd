"""Detours: the next point of a unit's way around cliffs, for crowds.

`Routes` decide for each unit, as what blocks its way may change. Cliffs do not change, so a way is
found once for each pair of cells and kept, also from one episode to the next: a unit's way costs
one look into a table. Where there is no way a unit walks to the cliff, and slides along it.

Rule it keeps: what is kept changes no way, only the time to find it.
"""

from __future__ import annotations

from functools import lru_cache

from sc2standin.map_reader.scenario import Scenario
from sc2standin.simulation.paths.blocks import Cells
from sc2standin.simulation.paths.field import FAR, Field
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import Point

MOST_WAYS = 50_000
"""Largest table of ways, about 10 MB; a full one is begun anew."""


@lru_cache(maxsize=2)
def detours_on(scenario: Scenario) -> Detours:
    """The ways of a map; they are kept for its next episode."""
    return Detours(Terrain(scenario))


class Detours:
    """The ways of one map."""

    def __init__(self, terrain: Terrain) -> None:
        self._cells = Cells(terrain)
        self._fields: dict[int, Field] = {}
        """By goal: the distances to it."""
        self._next: dict[tuple[int, int], Point | None] = {}
        """By two cells, which may be cliffs: the point to walk to; None for the goal itself."""

    def next_point(self, x: float, y: float, goal_x: float, goal_y: float) -> Point:
        """The point to walk to from (x, y) on the way to a goal."""
        cells = self._cells
        pair = cells.at(x, y), cells.at(goal_x, goal_y)
        if pair not in self._next:
            if len(self._next) >= MOST_WAYS:
                self._next.clear()
                self._fields.clear()
            free = (cells.free_cell(*cells.middle(cell)) for cell in pair)
            self._next[pair] = self._find(*free)
        return self._next[pair] or (goal_x, goal_y)

    def _find(self, cell: int, goal: int) -> Point | None:
        """The farthest point on the way that is straight ahead."""
        start = self._cells.middle(cell)
        if self._is_clear(start, self._cells.middle(goal)):
            return None
        if goal not in self._fields:
            self._fields[goal] = Field(self._cells.cells, self._cells.row, [goal])
        field = self._fields[goal]
        if field.distance(cell) == FAR:
            return None
        ahead = self._cells.middle(field.next(cell))
        while cell := field.next(cell):
            if not self._is_clear(start, self._cells.middle(cell)):
                break
            ahead = self._cells.middle(cell)
        return ahead

    def _is_clear(self, start: Point, end: Point) -> bool:
        """True if a unit can walk straight from one point to another."""
        return self._cells.free_until(start, end) == end
