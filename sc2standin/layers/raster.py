"""Draws units as discs: an image of indices, into which tables of values are looked up.

Rules it keeps, as in recorded images of the real game: a unit's disc is centred on the middle of
the pixel on which the unit stands. Its radius is whole pixels and a half, so the smallest unit is
one pixel. The density counts discs. The smooth density divides each pixel into sixteen parts, and
counts the parts whose middle is within the unit's exact disc.

The real game's order of overlapping units is unknown: here small units are above large ones.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sc2standin.layers.window import Window

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
_PARTS = 4
"""The number of parts of a pixel along each axis."""


class Discs:
    """The units in a window, with their places in its pixels.

    Args:
        x, y, radius: the places and radii of all units, in cells.
    """

    def __init__(self, window: Window, x: Floats, y: Floats, radius: Floats) -> None:
        self._shape = window.height, window.width
        columns, rows = (x - window.left) / window.pixel, (window.top - y) / window.pixel
        sizes = radius / window.pixel
        reach = sizes + 1.0
        in_image = (columns > -reach) & (columns < window.width + reach)
        in_image &= (rows > -reach) & (rows < window.height + reach)
        numbers = np.flatnonzero(in_image)
        whole = sizes[numbers].astype(np.intp)
        sorted_sizes = sorted(set(whole.tolist()), reverse=True)
        self._groups = [(size, numbers[whole == size]) for size in sorted_sizes]
        self._columns, self._rows, self._sizes = columns, rows, sizes

    def index(self) -> tuple[Ints, NDArray[np.uint8]]:
        """For each pixel: 1 + the index of the unit on top or 0, and the number of units."""
        index = np.zeros(self._shape, dtype=np.intp)
        density = np.zeros(self._shape, dtype=np.intp)
        for size, numbers in self._groups:
            across, down = _disc(size)
            columns = np.trunc(self._columns[numbers]).astype(np.intp)[:, None] + across
            rows = np.trunc(self._rows[numbers]).astype(np.intp)[:, None] + down
            inside = self._inside(columns, rows)
            places = rows[inside], columns[inside]
            # If two units of a size cover a pixel, the later one is on top.
            index[places] = np.broadcast_to(numbers[:, None] + 1, columns.shape)[inside]
            np.add.at(density, places, 1)
        return index, density.clip(max=255).astype(np.uint8)

    def smooth_density(self) -> NDArray[np.uint8]:
        """For each pixel, how many of its sixteen parts the units cover."""
        density = np.zeros(self._shape, dtype=np.intp)
        for size, numbers in self._groups:
            offsets = np.arange(-size - 2, size + 3)
            parts = (np.arange(len(offsets) * _PARTS) + 0.5) / _PARTS + offsets[0]
            columns, rows = np.trunc(self._columns[numbers]), np.trunc(self._rows[numbers])
            across = (parts + (columns - self._columns[numbers])[:, None]) ** 2
            down = (parts + (rows - self._rows[numbers])[:, None]) ** 2
            limit = (self._sizes[numbers] ** 2)[:, None, None]
            covered = down[:, :, None] + across[:, None, :] <= limit
            # Sums of slices: numpy's sum over two short axes takes three times as long.
            counted = covered.view(np.uint8)
            by_row = sum(counted[:, i::_PARTS] for i in range(_PARTS))
            counts = sum(by_row[:, :, i::_PARTS] for i in range(_PARTS))
            at_columns = columns.astype(np.intp)[:, None, None] + offsets
            at_rows = rows.astype(np.intp)[:, None, None] + offsets[:, None]
            at_columns, at_rows = np.broadcast_arrays(at_columns, at_rows)
            inside = self._inside(at_columns, at_rows)
            np.add.at(density, (at_rows[inside], at_columns[inside]), counts[inside])
        return density.clip(max=255).astype(np.uint8)

    def _inside(self, columns: Ints, rows: Ints) -> NDArray[np.bool_]:
        height, width = self._shape
        inside: NDArray[np.bool_] = (
            (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        )
        return inside


@lru_cache(maxsize=64)
def _disc(size: int) -> tuple[Ints, Ints]:
    """The columns and rows of a disc's pixels, relative to the disc's middle."""
    offsets = np.arange(-size, size + 1)
    rows, columns = np.nonzero(offsets**2 + offsets[:, None] ** 2 <= (size + 0.5) ** 2)
    return offsets[columns], offsets[rows]
