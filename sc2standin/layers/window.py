"""A part of the map as an image: the relation between pixels and places.

Pixels are square. Rows are counted downwards, but y increases upwards. As in the real game, the
camera width that a client asks for is the length of the screen's shorter side in cells. The
minimap's scale is chosen so that the whole map fits into it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import Point

Setup = Literal["feature_layer", "render"]
ClickPart = Literal["action_feature_layer", "action_render"]
SCREENS: tuple[tuple[Setup, ClickPart], ...] = (
    ("feature_layer", "action_feature_layer"),
    ("render", "action_render"),
)
"""The screens for which a client may ask, each with the field of an action that clicks on it."""
MAX_PIXELS = 1024
"""Largest width and height of an image."""
MIN_WIDTH, MAX_WIDTH = 8.0, 1024.0
"""The limits of the camera's width, in cells. In a narrower view, images of units would be huge."""
DEFAULT_WIDTH = 24.0
"""The camera's width in cells, if the client does not set the width."""


@dataclass(frozen=True)
class Window:
    """A rectangle of the map.

    Attributes:
        left, top: the map coordinates of the image's upper left corner.
        pixel: the side of a pixel, in cells.
        width, height: the size of the image in pixels.
    """

    left: float
    top: float
    pixel: float
    width: int
    height: int

    @property
    def right(self) -> float:
        """The x of the right edge."""
        return self.left + self.width * self.pixel

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.top - self.height * self.pixel

    def point(self, column: int, row: int) -> Point:
        """The place at the centre of a pixel."""
        return self.left + (column + 0.5) * self.pixel, self.top - (row + 0.5) * self.pixel

    def pixel_at(self, x: float, y: float) -> tuple[int, int]:
        """Column and row of the pixel that shows a place. The pixel may be outside of the image."""
        return math.floor((x - self.left) / self.pixel), math.floor((self.top - y) / self.pixel)

    def has(self, column: int, row: int) -> bool:
        """True if the pixel is in the image."""
        return 0 <= column < self.width and 0 <= row < self.height

    def shows(self, x: float, y: float, radius: float) -> bool:
        """True if a disc of this radius around the place is partly in the image."""
        beside = max(self.left - x, x - self.right, 0.0)
        above = max(self.bottom - y, y - self.top, 0.0)
        return beside * beside + above * above < radius * radius

    def sample(self, cells: NDArray[Any]) -> NDArray[Any]:
        """The value of the array `cells` (indexed y, x) at each pixel's centre; 0 off the map."""
        columns = np.floor(self.left + (np.arange(self.width) + 0.5) * self.pixel).astype(np.intp)
        rows = np.floor(self.top - (np.arange(self.height) + 0.5) * self.pixel).astype(np.intp)
        height, width = cells.shape
        image = cells[np.ix_(rows.clip(0, height - 1), columns.clip(0, width - 1))]
        image[(rows < 0) | (rows >= height)] = 0
        image[:, (columns < 0) | (columns >= width)] = 0
        return image


def is_possible(setup: sc_pb.SpatialCameraSetup) -> bool:
    """True if the image sizes for which a client asks are within the limits."""
    sizes = (setup.resolution, setup.minimap_resolution)
    return all(0 < side <= MAX_PIXELS for size in sizes for side in (size.x, size.y)) and (
        not setup.HasField("width") or MIN_WIDTH <= setup.width <= MAX_WIDTH
    )


def screen(setup: sc_pb.SpatialCameraSetup, camera: Point) -> Window:
    """The part of the map around the camera."""
    columns, rows = setup.resolution.x, setup.resolution.y
    width = setup.width if setup.HasField("width") else DEFAULT_WIDTH
    pixel = width / min(columns, rows)
    left, top = camera[0] - columns * pixel / 2, camera[1] + rows * pixel / 2
    return Window(left, top, pixel, columns, rows)


def minimap(setup: sc_pb.SpatialCameraSetup, terrain: Terrain) -> Window:
    """The window of the minimap: the whole map, or the playable area."""
    columns, rows = setup.minimap_resolution.x, setup.minimap_resolution.y
    x0, y0, x1, y1 = 0, 0, terrain.width, terrain.height
    if setup.crop_to_playable_area:
        x0, y0, x1, y1 = terrain.area
    return Window(x0, y1, max((x1 - x0) / columns, (y1 - y0) / rows), columns, rows)


def camera_action(camera: Point, options: sc_pb.InterfaceOptions, terrain: Terrain) -> sc_pb.Action:
    """The action that reports a camera move, with a field for each interface of a client."""
    action = sc_pb.Action()
    point = action.action_raw.camera_move.center_world_space
    point.x, point.y = camera
    for setup, part in SCREENS:
        if options.HasField(setup):
            pixel = getattr(action, part).camera_move.center_minimap
            pixel.x, pixel.y = minimap(getattr(options, setup), terrain).pixel_at(*camera)
    return action


def as_clicks(
    action: sc_pb.Action,
    at: Point | None,
    options: sc_pb.InterfaceOptions,
    camera: Point,
    terrain: Terrain,
) -> sc_pb.Action:
    """A raw command, together with a click on each screen that the client has.

    Args:
        at: the place of the target; None for a command without a target.
        camera: the place at the screen's centre; a target off the screen is clicked on the minimap.
    """
    shown = sc_pb.Action()
    shown.CopyFrom(action)
    given = action.action_raw.unit_command
    for setup, part in SCREENS:
        if not options.HasField(setup) or action.HasField(part):
            continue
        clicked = getattr(shown, part).unit_command
        clicked.ability_id, clicked.queue_command = given.ability_id, given.queue_command
        if at is None:
            continue
        seen = screen(getattr(options, setup), camera)
        pixel, coordinate = seen.pixel_at(*at), clicked.target_screen_coord
        if not seen.has(*pixel):
            pixel = minimap(getattr(options, setup), terrain).pixel_at(*at)
            coordinate = clicked.target_minimap_coord
        coordinate.x, coordinate.y = pixel
    return shown
