"""The part of the map that a picture shows, and the mapping of map points to pixels.

The whole playable area is in the middle of a square; the map around it fills the rest. Rules: a
picture's first row is at the top, a grid's first row at the bottom; a cell's corner, not its
centre, has integer coordinates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

Cells = NDArray[np.uint8]

MARGIN = 0.5
"""Cells that are shown beyond each end of the playable area's longer side."""

LARGEST_MAP = 1024
"""Upper bound of a map's side in cells; larger sizes in a message are clipped."""


class View(NamedTuple):
    """A square of the map on a square of pixels."""

    left: float
    bottom: float
    side: float
    """In cells."""
    side_px: int

    @property
    def scale(self) -> float:
        """Pixels per cell."""
        return self.side_px / self.side

    def point(self, x: float, y: float) -> tuple[float, float]:
        """The place of a map point, in pixels from the upper left corner.

        Far points and NaN are moved near the picture, because lines are drawn pixel by pixel.
        """
        size, scale = self.side_px, self.scale
        right, down = (x - self.left) * scale, size - (y - self.bottom) * scale
        return min(max(-size, right), 2 * size), min(max(-size, down), 2 * size)

    def length(self, cells: float, least_px: float = 0.0) -> float:
        """A length in pixels, at most the picture's side."""
        return min(max(least_px, cells * self.scale), self.side_px)


class Area(NamedTuple):
    """A rectangle of the map, in cells."""

    left: int
    bottom: int
    right: int
    top: int


def playable(game_info: sc_pb.ResponseGameInfo) -> Area:
    """The playable area, or the whole map if the game reports none."""
    start = game_info.start_raw
    low, high = start.playable_area.p0, start.playable_area.p1
    left, bottom = max(low.x, 0), max(low.y, 0)
    right, top = min(high.x, LARGEST_MAP), min(high.y, LARGEST_MAP)
    if right > left and top > bottom:
        return Area(left, bottom, right, top)
    width, height = start.map_size.x, start.map_size.y
    return Area(0, 0, min(max(width, 1), LARGEST_MAP), min(max(height, 1), LARGEST_MAP))


def view_of(area: Area, side_px: int) -> View:
    """The square around `area`."""
    side = max(area.right - area.left, area.top - area.bottom) + 2 * MARGIN
    left = (area.left + area.right - side) / 2
    return View(left, (area.bottom + area.top - side) / 2, side, side_px)


def cells_of(grid: common_pb2.ImageData) -> Cells:
    """A grid's values as (height, width), row 0 at the bottom; empty if it is incomplete."""
    width, height = grid.size.x, grid.size.y
    values = np.frombuffer(grid.data, np.uint8)
    if grid.bits_per_pixel == 1:
        values = np.unpackbits(values)[: width * height]
    if not width or not height or values.size != width * height:
        return np.zeros((0, 0), np.uint8)
    return values.reshape(height, width)


def spread(cells: Cells, view: View, *, beyond: int) -> Image.Image:
    """The visible part of a grid, as a picture of the view's size, smooth between cells' centres.

    Args:
        cells: (height, width), row 0 at the bottom; uint8.
        beyond: the value outside the grid.
    """
    height, width = cells.shape
    left, bottom = math.floor(view.left), math.floor(view.bottom)
    right, top = math.ceil(view.left + view.side), math.ceil(view.bottom + view.side)
    cut = np.full((top - bottom, right - left), beyond, np.uint8)
    x0, x1 = max(left, 0), min(right, width)
    y0, y1 = max(bottom, 0), min(top, height)
    if x0 < x1 and y0 < y1:
        cut[y0 - bottom : y1 - bottom, x0 - left : x1 - left] = cells[y0:y1, x0:x1]
    box = (
        view.left - left,
        top - view.bottom - view.side,
        view.left + view.side - left,
        top - view.bottom,
    )
    picture = Image.fromarray(np.ascontiguousarray(cut[::-1]))
    return picture.resize((view.side_px, view.side_px), Image.Resampling.BILINEAR, box)
