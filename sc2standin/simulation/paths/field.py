"""The distances of cells to a goal, by the shortest way along free cells.

A field grows from its goal only as far as was asked for, and is kept: many units with one goal
share it, and a unit that is near costs little.
"""

from __future__ import annotations

STRAIGHT, DIAGONAL = 5, 7
"""Lengths of a step; STRAIGHT stands for one cell, and 7/5 is close to the root of 2."""
FAR = 1 << 30
"""The distance of a cell that is not reached."""


class Field:
    """The distances to one goal, in fifths of a cell.

    Args:
        cells: blocked cells are not 0; see `Blocks`.
        row: cells in a row.
        goal: where the distance is 0; all of them are free.
    """

    def __init__(self, cells: list[int], row: int, goal: list[int]) -> None:
        self._cells = cells
        self._straight = (1, -1, row, -row)
        self._diagonal = tuple((a + b, a, b) for a in (1, -1) for b in (row, -row))
        self._distance = [FAR] * len(cells)
        self._waiting: dict[int, list[int]] = {0: list(goal)}
        """Cells to go on from, by distance."""
        self._level = 0
        """All distances below are final."""
        for cell in goal:
            self._distance[cell] = 0

    def distance(self, cell: int, most: int = FAR) -> int:
        """The distance of a cell; FAR if it is more than `most`, or there is no way."""
        while self._waiting and self._distance[cell] >= self._level <= most:
            self._grow()
        found = self._distance[cell]
        return found if found < self._level or not self._waiting else FAR

    def next(self, cell: int) -> int:
        """The neighbour of a cell, with a distance, that is nearest to the goal; 0 at the goal."""
        distance, cells = self._distance, self._cells
        here = distance[cell]
        best, least = 0, here
        for step in self._straight:
            there = distance[cell + step]
            if there + STRAIGHT <= here and there < least:
                best, least = cell + step, there
        for step, beside, above in self._diagonal:
            there = distance[cell + step]
            if (
                there + DIAGONAL <= here
                and there < least
                and not cells[cell + beside]
                and not cells[cell + above]
            ):
                best, least = cell + step, there
        return best

    def _grow(self) -> None:
        """Go on from the cells of one distance."""
        level, distance, cells = self._level, self._distance, self._cells
        waiting = self._waiting
        for cell in waiting.pop(level, ()):
            if distance[cell] != level:  # a shorter way was found meanwhile
                continue
            there = level + STRAIGHT
            for step in self._straight:
                other = cell + step
                if there < distance[other] and not cells[other]:
                    distance[other] = there
                    waiting.setdefault(there, []).append(other)
            there = level + DIAGONAL
            for step, beside, above in self._diagonal:
                other = cell + step
                if (
                    there < distance[other]
                    and not cells[other]
                    and not cells[cell + beside]
                    and not cells[cell + above]
                ):
                    distance[other] = there
                    waiting.setdefault(there, []).append(other)
        self._level = level + 1
