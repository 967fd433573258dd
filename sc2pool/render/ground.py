"""Draws the ground (terrain, creep and fog). A `View` maps cells of the map to pixels.

Creep and fog are drawn for each frame. Light falls from the upper left, higher ground is brighter,
and unpathable ground is dark. The playable area is in the centre of the picture, which is a square,
and the map around this area fills the rest.

The terrain's picture is made once per map and never changed. A grid that is missing or incomplete
in the message is skipped. The first row of a picture is at the top. The first row of a grid is at
the bottom. The corners of cells, not their centres, have integer coordinates.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

_LOW, _HIGH = np.array([54.0, 62.0, 66.0]), np.array([134.0, 128.0, 112.0])
"""Colours of the lowest and of the highest ground."""
_BLOCKED = 0.46
"""Brightness of unpathable ground, relative to pathable ground."""
_OUTSIDE = 0.55
"""Brightness outside the playable area, relative to the brightness inside."""
_RELIEF = 0.05
"""Change of brightness for a slope of one height unit per cell."""
_LEAST_RISE = 24.0
"""Minimum difference in height between the lowest and the highest colour, in height units."""
_GRID_LEAST_PX = 16
"""Minimum size of a cell, in pixels, at which faint lines separate the cells."""

_CREEP = (104, 54, 124)
_CREEP_OPACITY = 0.55
# Brightness of a cell that is hidden, seen before, visible, or fully hidden, in this order.
_BRIGHTNESS = np.array([128, 178, 255, 128], np.uint8)
_VISIBLE = 2


def ground(game_info: sc_pb.ResponseGameInfo, view: View) -> Image.Image:
    """A copy of the picture of the empty map, on which the caller may draw."""
    start = game_info.start_raw
    picture = _terrain(
        _Grid(start.terrain_height.SerializeToString()),
        _Grid(start.pathing_grid.SerializeToString()),
        playable(game_info),
        view,
    )
    return picture.copy()


class _Grid(bytes):
    """A serialized grid. Unlike a grid's message, this object can be a key of the cache."""

    def cells(self) -> Cells:
        return cells_of(sc_pb.ResponseGameInfo().start_raw.pathing_grid.FromString(self))


@lru_cache(maxsize=4)
def _terrain(heights: _Grid, pathing: _Grid, area: Area, view: View) -> Image.Image:
    height_cells, open_cells = heights.cells(), pathing.cells()
    brightness = spread(_relief(height_cells), view, beyond=128)
    level = spread(_levels(height_cells, open_cells), view, beyond=0)
    # Interpolated values are about 128 at a cell's border, so a threshold of 128 smooths borders.
    is_open = np.asarray(spread(open_cells * np.uint8(255), view, beyond=0)) >= 128
    if not open_cells.size:
        is_open[...] = True
    t = np.asarray(level, np.float32)[..., None] / 255.0
    colour = _LOW + t * (_HIGH - _LOW)
    light = np.asarray(brightness, np.float32) / 128.0
    light *= np.where(is_open, 1.0, _BLOCKED)
    light *= np.where(_inside(area, view), 1.0, _OUTSIDE)
    pixels = (colour * light[..., None]).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    _draw_grid(picture, area, view)
    return picture


def _relief(heights: Cells) -> Cells:
    """Brightness of each cell, from its slope; a flat cell has 128."""
    if min(heights.shape) < 2:
        return np.full(heights.shape, 128, np.uint8)
    up, right = np.gradient(heights.astype(np.float32))
    light = 1.0 + _RELIEF * (right - up)
    return (128.0 * light.clip(0.4, 1.6)).astype(np.uint8)


def _levels(heights: Cells, open_cells: Cells) -> Cells:
    """Each cell's height between the map's lowest (0) and highest (255) open ground."""
    where_open = heights[open_cells > 0] if open_cells.shape == heights.shape else heights
    if not where_open.size:
        return np.full(heights.shape, 128, np.uint8)
    low, high = float(where_open.min()), float(where_open.max())
    middle, rise = (low + high) / 2, max(high - low, _LEAST_RISE)
    level = (heights.astype(np.float32) - middle) / rise + 0.5
    return (255.0 * level.clip(0.0, 1.0)).astype(np.uint8)


def _inside(area: Area, view: View) -> NDArray[np.bool_]:
    middles = (np.arange(view.side_px) + 0.5) / view.scale
    x, y = view.left + middles, view.bottom + view.side - middles
    in_x = (area.left <= x) & (x < area.right)
    in_y = (area.bottom <= y) & (y < area.top)
    inside: NDArray[np.bool_] = in_y[:, None] & in_x[None, :]
    return inside


def _draw_grid(picture: Image.Image, area: Area, view: View) -> None:
    if view.scale < _GRID_LEAST_PX:
        return
    draw = ImageDraw.Draw(picture, "RGBA")
    left, top = view.point(area.left, area.top)
    right, bottom = view.point(area.right, area.bottom)
    for x in range(area.left, area.right + 1):
        at, _ = view.point(x, 0)
        draw.line((at, top, at, bottom), (255, 255, 255, 14), 2)
    for y in range(area.bottom, area.top + 1):
        _, at = view.point(0, y)
        draw.line((left, at, right, at), (255, 255, 255, 14), 2)


def lay_creep(picture: Image.Image, state: raw_pb2.MapState, view: View) -> None:
    """Draw the creep, if the message has any."""
    cells = cells_of(state.creep)
    if not cells.any():
        return
    share = spread(cells * np.uint8(255), view, beyond=0)
    opacity = round(255 * _CREEP_OPACITY)
    picture.paste(_CREEP, mask=share.point([opacity * (level >= 128) for level in range(256)]))


def lay_fog(picture: Image.Image, state: raw_pb2.MapState, view: View) -> Image.Image:
    """The picture, darker in cells that are not visible, and darkest in cells never seen."""
    cells = cells_of(state.visibility)
    if not cells.size or (cells == _VISIBLE).all():
        return picture
    light = spread(_BRIGHTNESS[cells & 3], view, beyond=int(_BRIGHTNESS[0]))
    return Image.composite(picture, Image.new("RGB", picture.size), light)


Cells = NDArray[np.uint8]

MARGIN = 0.5
"""The number of cells that are shown beyond each end of the playable area's longer side."""

LARGEST_MAP = 1024
"""Maximum side of a map in cells; larger sizes in a message are clipped."""


class View(NamedTuple):
    """Maps a square of the map to a square of pixels."""

    left: float
    bottom: float
    side: float
    """The length of the square's side, in cells."""
    side_px: int

    @property
    def scale(self) -> float:
        """The number of pixels per cell."""
        return self.side_px / self.side

    def point(self, x: float, y: float) -> tuple[float, float]:
        """The position of a map point, in pixels from the upper left corner.

        Far points and NaN are moved near the picture, because a line takes time for each of its
        pixels.
        """
        size, scale = self.side_px, self.scale
        right, down = (x - self.left) * scale, size - (y - self.bottom) * scale
        return min(max(-size, right), 2 * size), min(max(-size, down), 2 * size)

    def length(self, cells: float, least_px: float = 0.0) -> float:
        """The length of `cells` in pixels, at least `least_px` and at most the picture's side."""
        return min(max(least_px, cells * self.scale), self.side_px)


class Area(NamedTuple):
    """A rectangle of the map, in cells."""

    left: int
    bottom: int
    right: int
    top: int


def playable(game_info: sc_pb.ResponseGameInfo) -> Area:
    """The playable area, or the whole map if the game does not report an area."""
    start = game_info.start_raw
    low, high = start.playable_area.p0, start.playable_area.p1
    left, bottom = max(low.x, 0), max(low.y, 0)
    right, top = min(high.x, LARGEST_MAP), min(high.y, LARGEST_MAP)
    if right > left and top > bottom:
        return Area(left, bottom, right, top)
    width, height = start.map_size.x, start.map_size.y
    return Area(0, 0, min(max(width, 1), LARGEST_MAP), min(max(height, 1), LARGEST_MAP))


def view_of(area: Area, side_px: int) -> View:
    """The square view with `area` and the margin around it."""
    side = max(area.right - area.left, area.top - area.bottom) + 2 * MARGIN
    left = (area.left + area.right - side) / 2
    return View(left, (area.bottom + area.top - side) / 2, side, side_px)


def cells_of(grid: common_pb2.ImageData) -> Cells:
    """A grid's values as (height, width), from the bottom row; empty if the grid is incomplete."""
    width, height = grid.size.x, grid.size.y
    values = np.frombuffer(grid.data, np.uint8)
    if grid.bits_per_pixel == 1:
        values = np.unpackbits(values)[: width * height]
    if not width or not height or values.size != width * height:
        return np.zeros((0, 0), np.uint8)
    return values.reshape(height, width)


def spread(cells: Cells, view: View, *, beyond: int) -> Image.Image:
    """The part of a grid inside the view, as a picture. `beyond` fills cells outside the grid."""
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
