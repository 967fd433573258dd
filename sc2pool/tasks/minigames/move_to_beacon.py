"""MoveToBeacon: a marine walks to a beacon, with a reward of 1 each time it arrives.

`MoveToBeacon` is a complete `Task`, and a good task to read first. A task defines the learner's
actions (`act`), observations (`observe`) and rewards (`reward`). The inherited `reward` is the
change of the game's score, which fits this map. The task reads the game's messages directly and
builds no object per unit. `move_to_beacon_bot.py` is the same task with python-sc2's `BotAI`.

`MoveToBeaconImage` is the same game with images as observations, for convolutional policies. Its
camera follows the marine, so the beacon's place in the image is the direction to walk in. With a
fixed camera, a network would have to find the marine's and the beacon's place and subtract them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import N_DIRECTIONS, PlayableArea, bearing_of, walk_target
from sc2pool.tasks.task import Task
from sc2pool.units import NEUTRAL, Floats, Kind, Units, select

BEACONS = Kind("Beacon_Terran", NEUTRAL)
OWN_MARINES = Kind("Marine")


class MoveToBeacon(Task):
    """A marine walks to the beacon, in one of eight directions per step.

    The action space is `Discrete(8)`: the marine walks right (east) at action 0, up at action 2,
    left at action 4 and down at action 6; odd actions are the diagonals between these directions.

    The observation space is `Box(-1, 1, (5,), float32)`, described at `beacon_vector`.
    """

    map_name: ClassVar[str] = "MoveToBeacon"
    max_loops: ClassVar[int | None] = 1920
    action_space = spaces.Discrete(N_DIRECTIONS)
    observation_space: spaces.Box = spaces.Box(-1.0, 1.0, (5,), np.float32)

    area: PlayableArea
    marines: Units
    beacons: Units

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)

    def observe(self) -> NDArray[np.generic]:
        # `observe()` runs after every step, so these units are still current in `act()`.
        self.marines, self.beacons = select(self.lazy_observation, OWN_MARINES, BEACONS)
        return beacon_vector(self.marines.positions, self.beacons.positions, self.area)

    def act(self, action: int) -> Commands:
        return [
            commands.move([tag], walk_target(x, y, int(action), self.area))
            for tag, (x, y) in zip(self.marines.tags, self.marines.positions.tolist(), strict=True)
        ]


def beacon_vector(marines: Floats, beacons: Floats, area: PlayableArea) -> NDArray[np.float32]:
    """The observation: values of the first marine and the first beacon.

    Args:
        marines: positions of the learner's marines, (n, 2); n may be 0.
        beacons: positions of the beacons, (n, 2); n may be 0.
        area: the map's playable area.

    Returns:
        (5,) float32, each in [-1, 1]:

        Values 0 and 1: the unit vector (x, y) from the marine to the beacon.
        Value 2: the distance to the beacon, in lengths of the area's longer side, in [0, 1].
        Values 3 and 4: the marine's position (x, y) relative to the area's centre, in halves of the
        area's longer side.

        Zeros stand for a missing unit.
    """
    if not len(marines):
        return np.zeros(5, np.float32)
    x, y = marines[0].tolist()
    bearing = (0.0, 0.0, 0.0)
    if len(beacons):
        beacon_x, beacon_y = beacons[0].tolist()
        bearing = bearing_of(beacon_x - x, beacon_y - y, area.longer_side)
    return np.array((*bearing, *area.relative(x, y)), np.float32)


IMAGE_SIZE = 64
BEACON_RADIUS = 2.5
SMALLEST_RADIUS_PX = 1.0
"""A disc of this radius, in pixels, covers at least one pixel's centre at every position."""

PIXEL_X = (np.arange(IMAGE_SIZE) - (IMAGE_SIZE - 1) / 2)[None, :]
PIXEL_Y = -PIXEL_X.T
"""The x (to the right) and y (up) of the pixels' centres, in pixels from the image's centre."""


class MoveToBeaconImage(MoveToBeacon):
    """A marine walks to the beacon; observations are images of the map from above.

    The action space is `Discrete(8)`, as in `MoveToBeacon`.

    The observation space is `Box(0, 255, (2, 64, 64), uint8)`, with the planes as the first axis.
    The first marine is always in the image's centre. Row 0 is at the top, column 0 at the left. The
    image extends in each direction by the length of the playable area's longer side, so it always
    shows the whole area. Plane 0 is 255 on a beacon (a disc of radius 2.5 map units), and plane 1
    is 255 on the playable area. All other values are 0. Without a marine the image is black.
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
    """Set a beacon's pixels in `plane` to 255; x and y are in map units from the image's centre."""
    squared_distance = (PIXEL_X - x * pixels_per_unit) ** 2 + (PIXEL_Y - y * pixels_per_unit) ** 2
    radius = max(BEACON_RADIUS * pixels_per_unit, SMALLEST_RADIUS_PX)
    plane[squared_distance <= radius**2] = 255


def draw_area(
    plane: NDArray[np.uint8], x: float, y: float, area: PlayableArea, pixels_per_unit: float
) -> None:
    """Set the pixels of the playable area to 255. The image's centre is the map point (x, y)."""
    map_x = x + PIXEL_X / pixels_per_unit
    map_y = y + PIXEL_Y / pixels_per_unit
    inside = (map_x >= area.left) & (map_x <= area.right)
    plane[inside & (map_y >= area.bottom) & (map_y <= area.top)] = 255
