"""The fights of the mini-games as images, for convolutional policies.

The middle of the learner's units is always in the middle of the image. Row 0 is the farthest up and
column 0 the farthest left. The image extends in each direction by the length of the playable area's
longer side, so it always shows the whole area. Units are discs; the more hit points they have, the
brighter.

Rule: only the observation differs from the task with a vector; the actions are inherited.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import IMAGE_SIZE, draw_area
from sc2pool.tasks.minigames.zerglings.defeat_zerglings_and_banelings import (
    DefeatZerglingsAndBanelings,
)
from sc2pool.tasks.minigames.zerglings.find_and_defeat_zerglings import (
    MARINE_HEALTH,
    ZERGLING_HEALTH,
    FindAndDefeatZerglings,
)
from sc2pool.units import Floats, Units, health

UNIT_RADIUS_PX = 1.0
"""Radius of a unit's disc: it covers the centre of at least one pixel, at every position."""
BANELING_HEALTH = 30.0
_PIXELS = np.stack(
    np.meshgrid(
        np.arange(IMAGE_SIZE) - (IMAGE_SIZE - 1) / 2, (IMAGE_SIZE - 1) / 2 - np.arange(IMAGE_SIZE)
    )
)
"""(2, 64, 64): x and y of each pixel's centre, in pixels from the middle; y up."""


class FindAndDefeatZerglingsImage(FindAndDefeatZerglings):
    """Search the map with three marines, seeing it from above.

    Action space: `Discrete(11)`, as in `FindAndDefeatZerglings`.

    Observation space: `Box(0, 255, (3, 64, 64), uint8)`, channel first; see the file's docstring.
    Plane 0: marines, 1: zerglings in sight, 2: the age of the last sight of each part of the
    playable area. It is from 0 (now, or outside the area) to 255 (36 seconds or 800 loops, or never
    seen).
    """

    observation_space = spaces.Box(0, 255, (3, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self._read_units()
        image = np.zeros((3, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        if len(self.marines):
            middle = np.array(self.centre())
            draw_units(image[0], self.marines, MARINE_HEALTH, middle, self.area)
            draw_units(image[1], self.zerglings, ZERGLING_HEALTH, middle, self.area)
            self._draw_ages(image[2], middle)
        return image

    def _draw_ages(self, plane: NDArray[np.uint8], middle: Floats) -> None:
        area, (rows, columns) = self.area, self.memory.shape
        x, y = _PIXELS * (2 * area.longer_side / IMAGE_SIZE) + middle[:, None, None]
        row = np.floor((y - area.bottom) / max(area.top - area.bottom, 1.0) * rows).astype(int)
        column = np.floor((x - area.left) / max(area.right - area.left, 1.0) * columns).astype(int)
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        ages = (self.memory.ages().reshape(rows, columns) * 255).astype(np.uint8)
        plane[inside] = ages[row[inside], column[inside]]


class DefeatZerglingsAndBanelingsImage(DefeatZerglingsAndBanelings):
    """Lead the marines as one group, seeing the battle from above.

    Action space: `Discrete(12)`, as in `DefeatZerglingsAndBanelings`.

    Observation space: `Box(0, 255, (4, 64, 64), uint8)`, channel first; see the file's docstring.
    Plane 0: marines, 1: zerglings, 2: banelings, 3: 255 where the playable area is.
    """

    observation_space = spaces.Box(0, 255, (4, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self._read_units()
        image = np.zeros((4, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        if len(self.marines):
            x, y = self.marines.positions.mean(axis=0).tolist()
            middle = np.array((x, y))
            draw_units(image[0], self.marines, MARINE_HEALTH, middle, self.area)
            draw_units(image[1], self.zerglings, ZERGLING_HEALTH, middle, self.area)
            draw_units(image[2], self.banelings, BANELING_HEALTH, middle, self.area)
            draw_area(image[3], x, y, self.area, IMAGE_SIZE / 2 / self.area.longer_side)
        return image


def draw_units(
    plane: NDArray[np.uint8], units: Units, full_health: float, middle: Floats, area: PlayableArea
) -> None:
    """Draw a disc for each unit, as bright as its share of hit points; the brightest is on top.

    Args:
        plane: (64, 64), changed in place. Parts of discs outside it are not drawn.
        full_health: the hit points that are drawn as 255.
        middle: (2,), the map point in the middle of the image.
    """
    if not len(units):
        return
    brightness = np.clip(health(units) / full_health * 255, 1, 255).astype(np.uint8)
    places = (units.positions - middle) * (IMAGE_SIZE / 2 / area.longer_side)
    for place, value in zip(places, brightness, strict=True):
        x, y = _PIXELS - place[:, None, None]
        covered = x * x + y * y <= UNIT_RADIUS_PX**2
        plane[covered] = np.maximum(plane[covered], value)
