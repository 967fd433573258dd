"""`Melee` as an image of the whole map, for convolutional policies.

The playable area fills the longer side of the image, its middle is the middle of the image; row 0
is the farthest up and column 0 the farthest left. Units and structures are squares of their size,
as bright as they are finished. The last two planes are the same everywhere: money and free supply,
which have no place on the map.

Rule: only the observation differs from the task with a vector; the actions are inherited.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.melee.grid import bytes_of, walkable_of
from sc2pool.tasks.melee.melee import Melee
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon_image import IMAGE_SIZE
from sc2pool.tasks.minigames.towns.town import Unit
from sc2pool.tasks.minigames.towns.unit_types import (
    BARRACKS,
    COMMAND_CENTER,
    MARINE,
    SCV,
    SUPPLY_DEPOT,
)

N_PLANES = 9


class MeleeImage(Melee):
    """Win a melee, seeing the map from above.

    Action space: `Discrete(8)`, as in `Melee`.

    Observation space: `Box(0, 255, (9, 64, 64), uint8)`, channel first; see the file's docstring.
    Plane 0: own SCVs, 1: command centres and supply depots, 2: barracks, 3: marines, 4: enemy
    units, 5: enemy structures, 6: terrain height, 0 where no unit can walk, 7: minerals, 255 is
    1000, 8: free supply, 255 is 20.
    """

    observation_space = spaces.Box(0, 255, (N_PLANES, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def on_start(self) -> None:
        super().on_start()
        self._canvas = _Canvas(PlayableArea.of(self.game_info))
        self._terrain = self._canvas.terrain(self.game_info)

    def observe(self) -> NDArray[np.generic]:
        self.read_observation()
        town, front, canvas = self.town, self.front, self._canvas
        image = np.zeros((N_PLANES, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        groups: tuple[Iterable[Unit], ...] = (
            town.all(SCV),
            [*town.all(COMMAND_CENTER), *town.all(SUPPLY_DEPOT)],
            town.all(BARRACKS),
            town.all(MARINE),
            front.enemies,
            front.enemy_structures,
        )
        for plane, units in zip(image, groups, strict=False):
            for unit in units:
                canvas.draw(plane, unit)
        image[6] = self._terrain
        image[7] = round(255 * min(town.minerals / 1000, 1.0))
        image[8] = round(255 * min(max((town.food_cap - town.food_used) / 20, 0.0), 1.0))
        return image


class _Canvas:
    """Where a point of the map is in the image."""

    def __init__(self, area: PlayableArea) -> None:
        self._centre_x, self._centre_y = area.centre
        self._scale = IMAGE_SIZE / area.longer_side

    def draw(self, plane: NDArray[np.uint8], unit: Unit) -> None:
        """Draw a unit as a square of its size, as bright as it is finished."""
        half = max(unit.radius, 0.5) * self._scale
        column = IMAGE_SIZE / 2 + (unit.pos.x - self._centre_x) * self._scale
        row = IMAGE_SIZE / 2 - (unit.pos.y - self._centre_y) * self._scale
        top, bottom, left, right = (
            min(max(int(at), 0), IMAGE_SIZE - 1)
            for at in (row - half, row + half, column - half, column + half)
        )
        plane[top : bottom + 1, left : right + 1] = 55 + round(200 * unit.build_progress)

    def terrain(self, game_info: sc_pb.ResponseGameInfo) -> NDArray[np.uint8]:
        """The height of the ground in the middle of each pixel, 0 where no unit can walk."""
        start = game_info.start_raw
        heights, walkable = bytes_of(start.terrain_height), walkable_of(start.pathing_grid)
        height, width = heights.shape
        if not heights.size or walkable.shape != heights.shape:
            return np.zeros((IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        ground = np.where(walkable, heights, 0)
        offsets = (np.arange(IMAGE_SIZE) + 0.5 - IMAGE_SIZE / 2) / self._scale
        columns = np.floor(self._centre_x + offsets).astype(int)
        rows = np.floor(self._centre_y - offsets).astype(int)
        inside = np.outer((rows >= 0) & (rows < height), (columns >= 0) & (columns < width))
        picked = ground[np.ix_(rows.clip(0, height - 1), columns.clip(0, width - 1))]
        return np.where(inside, picked, 0).astype(np.uint8)
