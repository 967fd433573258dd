"""MoveToBeacon: one marine, one beacon; +1 each time the marine reaches it.

This is a whole task as a `Task`, and a good first one to read. A task defines what the learner can
do (`act`), what it observes (`observe`) and its reward (`reward`; the inherited one is the change
of the game's score, which fits this map). It reads the game's messages directly and builds no
object per unit.

`move_to_beacon_bot.py` is the same task with python-sc2's `BotAI`, `move_to_beacon_image.py` the
same game with images as observations.
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
    """Walk to the beacon, in eight directions.

    Action space: `Discrete(8)`. Action k orders the marine to walk in direction k: 0 is right
    (east), then counter-clockwise in steps of 45°, so 2 is up, 4 left and 6 down.

    Observation space: `Box(-1, 1, (5,), float32)`, see `beacon_vector`.
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
        # `observe()` runs after every step, so these are still current in `act()`.
        self.marines, self.beacons = select(self.lazy_observation, OWN_MARINES, BEACONS)
        return beacon_vector(self.marines.positions, self.beacons.positions, self.area)

    def act(self, action: int) -> Commands:
        return [
            commands.move([tag], walk_target(x, y, int(action), self.area))
            for tag, (x, y) in zip(self.marines.tags, self.marines.positions.tolist(), strict=True)
        ]


def beacon_vector(marines: Floats, beacons: Floats, area: PlayableArea) -> NDArray[np.float32]:
    """The observation: the first marine and the first beacon.

    Args:
        marines: (n, 2) positions of the learner's marines, n may be 0.
        beacons: (n, 2) positions of the beacons, n may be 0.
        area: the map's playable area.

    Returns:
        (5,) float32, each in [-1, 1]:

        0, 1: unit vector (x, y) from the marine to the beacon,
        2: distance to the beacon, in lengths of the area's longer side, in [0, 1],
        3, 4: the marine's position (x, y) from the area's centre, in halves of its longer side.

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
