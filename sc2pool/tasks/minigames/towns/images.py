"""The mini-games with an economy as images, for convolutional policies.

The longer side of the playable area fills the image, and the area's middle is the image's middle.
Row 0 is the farthest up and column 0 the farthest left. Structures are rectangles; the more
finished they are, the brighter. Units are squares of one cell. The last two planes are constant:
minerals and free supply, which have no place on the map.

Rule: only the observation differs from the task with a vector; the actions are inherited.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks.minigames.move_to_beacon import IMAGE_SIZE
from sc2pool.tasks.minigames.towns.build_marines import BuildMarines
from sc2pool.tasks.minigames.towns.collect_minerals_and_gas import CollectMineralsAndGas
from sc2pool.tasks.minigames.towns.town import (
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
