"""The ground of a map file that is not flat: one character for each cell, the top row first.

    #       no ground: cliffs and chasms
    0 to 9  open ground on this level, on which structures can stand
    a to z  a ramp: walkable, but not for structures; each letter is a little higher

Level d has the height BASE + 16 d, as in the real game; letter number n has BASE + 2 n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sc2standin.map_reader.fields import Fields, ScenarioError

BASE, A_LEVEL, A_LETTER = 191, 16, 2
"""Height bytes: the height of level 0, and the steps between two levels and two letters."""
CLIFF = 127
"""The height byte of cells without ground."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The cells of a map, as (y, x) with y up."""

    walkable: NDArray[np.bool_]
    buildable: NDArray[np.bool_]
    height: NDArray[np.uint8]


def read_ground(fields: Fields, size: tuple[int, int]) -> Ground | None:
    """The ground of a map; None if the map is flat."""
    rows = fields.rows("ground", size)
    if rows is None:
        return None
    cells = np.array([[ord(letter) for letter in row] for row in reversed(rows)])
    level, ramp = _between(cells, "0", "9"), _between(cells, "a", "z")
    if not (level | ramp | (cells == ord("#"))).all():
        raise ScenarioError("map.ground must be made of #, 0 to 9, and a to z")
    height = np.full(cells.shape, CLIFF)
    height[level] = BASE + A_LEVEL * (cells[level] - ord("0"))
    height[ramp] = BASE + A_LETTER * (cells[ramp] - ord("a"))
    if height.max() > 255:
        raise ScenarioError("map.ground is too high: the highest level is 4")
    return Ground(level | ramp, level, height.astype(np.uint8))


def _between(cells: NDArray[np.int_], low: str, high: str) -> NDArray[np.bool_]:
    return np.asarray((cells >= ord(low)) & (cells <= ord(high)))
