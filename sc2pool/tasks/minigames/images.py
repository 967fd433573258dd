"""The mini-games as images, for convolutional policies.

Only the observation differs from the task with a vector; the actions are inherited. Row 0 is the
farthest up and column 0 the farthest left.

In the games with an economy, the longer side of the playable area fills the image, and the area's
middle is the image's middle. Structures are rectangles; the more finished they are, the brighter.
Units are squares of one cell. The last two planes are constant: minerals and free supply, which
have no place on the map.

In the fights, the middle of the learner's units is always in the middle of the image. The image
extends in each direction by the length of the playable area's longer side, so it always shows the
whole area. Units are discs; the more hit points they have, the brighter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks.minigames.build_marines import BuildMarines
from sc2pool.tasks.minigames.collect_minerals_and_gas import CollectMineralsAndGas
from sc2pool.tasks.minigames.defeat_zerglings_and_banelings import (
    DefeatZerglingsAndBanelings,
)
from sc2pool.tasks.minigames.find_and_defeat_zerglings import (
    MARINE_HEALTH,
    ZERGLING_HEALTH,
    FindAndDefeatZerglings,
)
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import IMAGE_SIZE, draw_area
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    FOOTPRINTS,
    GEYSER,
    MARINE,
    MINERAL_FIELD,
    REFINERY,
    SCV,
    SUPPLY_DEPOT,
    Town,
)
from sc2pool.units import Floats, Units, health

UNIT_SIZE = (0.5, 0.5)
"""Half the width and height of a unit in the image, in cells."""
N_PLANES = 6


class CollectMineralsAndGasImage(CollectMineralsAndGas):
    """Let the town grow, seeing it from above.

    Action space: `Discrete(6)`, as in `CollectMineralsAndGas`.

    Observation space: `Box(0, 255, (6, 64, 64), uint8)`, channel first; see the file's docstring.
    Plane 0: SCVs, 1: command centres and supply depots, 2: mineral fields, 3: geysers (half as
    bright) and refineries, 4: minerals (255 is 1000), 5: free supply (255 is 20).
    """

    observation_space = spaces.Box(0, 255, (N_PLANES, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self.town.update(self.observation)
        kinds = ((SCV,), (COMMAND_CENTER, SUPPLY_DEPOT), (MINERAL_FIELD,), (GEYSER, REFINERY))
        return town_image(self.town, kinds)


class BuildMarinesImage(BuildMarines):
    """Let the town grow, and train marines, seeing it from above.

    Action space: `Discrete(6)`, as in `BuildMarines`.

    Observation space: `Box(0, 255, (6, 64, 64), uint8)`, channel first; see the file's docstring.
    Plane 0: SCVs, 1: command centres and supply depots, 2: barracks, 3: marines, 4: minerals (255
    is 1000), 5: free supply (255 is 20).
    """

    observation_space = spaces.Box(0, 255, (N_PLANES, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self.town.update(self.observation)
        kinds = ((SCV,), (COMMAND_CENTER, SUPPLY_DEPOT), (BARRACKS,), (MARINE,))
        return town_image(self.town, kinds)


def town_image(town: Town, kinds: Sequence[tuple[int, ...]]) -> NDArray[np.uint8]:
    """Draw each group of unit types into its own plane; the last two are minerals and supply."""
    image = np.zeros((N_PLANES, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
    centre_x, centre_y = town.area.centre
    scale, middle = IMAGE_SIZE / town.area.longer_side, IMAGE_SIZE / 2
    for plane, types in zip(image, kinds, strict=False):
        for unit_type in types:
            half_x, half_y = FOOTPRINTS.get(unit_type, UNIT_SIZE)
            for unit in town.all(unit_type):
                brightness = 127 if unit_type == GEYSER else 55 + round(200 * unit.build_progress)
                column = middle + (unit.pos.x - centre_x) * scale
                row = middle - (unit.pos.y - centre_y) * scale
                top, bottom = (_pixel(row + side * half_y * scale) for side in (-1, 1))
                left, right = (_pixel(column + side * half_x * scale) for side in (-1, 1))
                plane[top : max(bottom, top + 1), left : max(right, left + 1)] = brightness
    vector = town.vector()
    image[-2], image[-1] = round(255 * float(vector[0])), round(255 * float(vector[3]))
    return image


def _pixel(place: float) -> int:
    """The index of the pixel at a place, clipped to the image."""
    return min(max(round(place), 0), IMAGE_SIZE)


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
