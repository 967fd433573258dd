"""MoveToBeacon with images as observations, for convolutional policies.

The camera follows the marine, so the beacon's place in the image is the direction to walk in. With
a fixed camera a network would first have to find two places and subtract them.

Rule: only the observation differs from `MoveToBeacon`; the actions are inherited.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import BEACONS, OWN_MARINES, MoveToBeacon
from sc2pool.units import select

IMAGE_SIZE = 64
BEACON_RADIUS = 2.5
SMALLEST_RADIUS_PX = 1.0
"""A disc of this radius covers the centre of at least one pixel, at every position."""

# The centres of the pixels, in pixels from the middle of the image; x to the right, y up.
_X = (np.arange(IMAGE_SIZE) - (IMAGE_SIZE - 1) / 2)[None, :]
_Y = -_X.T


class MoveToBeaconImage(MoveToBeacon):
    """Walk to the beacon, seeing the map from above.

    Action space: `Discrete(8)`, as in `MoveToBeacon`.

    Observation space: `Box(0, 255, (2, 64, 64), uint8)`, channel first. The first marine is always
    in the middle, row 0 is the farthest up and column 0 the farthest left. The image shows as much
    to each side as the playable area's longer side, so all of the area is always in it. Plane 0
    is 255 where a beacon lies (a disc of radius 2.5 map units), plane 1 where the playable area
    is; elsewhere they are 0. Without a marine the image is black.
    """

    observation_space = spaces.Box(0, 255, (2, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self.marines, self.beacons = select(self.lazy_observation, OWN_MARINES, BEACONS)
        image = np.zeros((2, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        if len(self.marines):
            x, y = self.marines.positions[0].tolist()
            pixels_per_unit = IMAGE_SIZE / 2 / self.area.longer_side
            for beacon_x, beacon_y in self.beacons.positions.tolist():
                draw_beacon(image[0], beacon_x - x, beacon_y - y, pixels_per_unit)
            draw_area(image[1], x, y, self.area, pixels_per_unit)
        return image


def draw_beacon(plane: NDArray[np.uint8], x: float, y: float, pixels_per_unit: float) -> None:
    """Set the pixels of a beacon to 255.

    Args:
        plane: (64, 64), changed in place; what falls outside it is not drawn.
        x, y: the beacon's place as seen from the middle, in map units.
    """
    squared_distance = (_X - x * pixels_per_unit) ** 2 + (_Y - y * pixels_per_unit) ** 2
    radius = max(BEACON_RADIUS * pixels_per_unit, SMALLEST_RADIUS_PX)
    plane[squared_distance <= radius**2] = 255


def draw_area(
    plane: NDArray[np.uint8], x: float, y: float, area: PlayableArea, pixels_per_unit: float
) -> None:
    """Set the pixels of the playable area to 255, as seen from the map point (x, y)."""
    map_x = x + _X / pixels_per_unit
    map_y = y + _Y / pixels_per_unit
    inside = (map_x >= area.left) & (map_x <= area.right)
    plane[inside & (map_y >= area.bottom) & (map_y <= area.top)] = 255
