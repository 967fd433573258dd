"""MoveToBeacon, written with python-sc2's `BotAI`.

This task has the same spaces as `move_to_beacon`, so a policy that was trained on one of the tasks
can play the other. In a bot, units are objects and orders are method calls. A step costs a worker
about four times the CPU time of a step of `move_to_beacon`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from sc2.position import Point2
from sc2.units import Units

from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.minigames.geometry import N_DIRECTIONS, PlayableArea, walk_target
from sc2pool.tasks.minigames.move_to_beacon import beacon_vector
from sc2pool.units import Floats, unit_id

BEACON = unit_id("Beacon_Terran")


class MoveToBeaconBot(RLBotAI):
    """Walk to the beacon, in eight directions; the spaces are those of `MoveToBeacon`."""

    map_name: ClassVar[str] = "MoveToBeacon"
    max_loops: ClassVar[int | None] = 1920
    action_space = spaces.Discrete(N_DIRECTIONS)
    observation_space: spaces.Box = spaces.Box(-1.0, 1.0, (5,), np.float32)

    area: PlayableArea

    async def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info._proto)

    def act(self, action: int) -> None:
        for marine in self.units:
            x, y = marine.position
            marine.move(Point2(walk_target(x, y, int(action), self.area)))

    def observe(self) -> NDArray[np.float32]:
        beacons = self.all_units.filter(lambda unit: unit._proto.unit_type == BEACON)
        return beacon_vector(positions(self.units), positions(beacons), self.area)


def positions(units: Units) -> Floats:
    """The units' map coordinates, (n, 2), in the order of the units' tags."""
    ordered = sorted(units, key=lambda unit: unit.tag)
    return np.array([unit.position for unit in ordered], dtype=np.float64).reshape(-1, 2)
