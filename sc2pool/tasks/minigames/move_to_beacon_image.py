"""MoveToBeacon seen as an image, for convolutional policies.

Rule: only what the learner sees differs from `MoveToBeacon`; its actions are inherited.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

IMAGE_SIZE = 64
MARINE_RADIUS = 0.75
"""Twice a marine's own radius, so that its disc covers more than a single pixel."""
BEACON_RADIUS = 2.5
SMALLEST_RADIUS_PX = 1.0
"""A disc of this radius covers at least one pixel's centre wherever it lies."""

_ROWS, _COLUMNS = np.ogrid[:IMAGE_SIZE, :IMAGE_SIZE]


class MoveToBeaconImage(MoveToBeacon):
    """Walk to the beacon, seeing the map from above.

    Action space: `Discrete(8)`, as in `MoveToBeacon`.

    Observation space: `Box(0, 255, (2, 64, 64), uint8)`, channel first: the plane of the marines
    and the plane of the beacons, 255 on a unit's disc and 0 elsewhere. The longer side of the
    playable area fills the image; row 0 is the top of the map and column 0 its left edge.
    """

    observation_space = spaces.Box(0, 255, (2, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        super().observe()
        image = np.zeros((2, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        for x, y in self.marines.positions.tolist():
            draw_disc(image[0], x, y, MARINE_RADIUS, self.area)
        for x, y in self.beacons.positions.tolist():
            draw_disc(image[1], x, y, BEACON_RADIUS, self.area)
        return image


def draw_disc(
    plane: NDArray[np.uint8], x: float, y: float, radius: float, area: PlayableArea
) -> None:
    """Set the pixels whose centres lie within `radius` of the map point (x, y) to 255.

    Args:
        plane: (64, 64) uint8, changed in place; what falls outside it is not drawn.
        radius: in map units.
    """
    pixels_per_unit = IMAGE_SIZE / area.longer_side
    column = (x - area.left) * pixels_per_unit - 0.5
    row = (area.top - y) * pixels_per_unit - 0.5
    squared_distance = (_ROWS - row) ** 2 + (_COLUMNS - column) ** 2
    plane[squared_distance <= max(radius * pixels_per_unit, SMALLEST_RADIUS_PX) ** 2] = 255
