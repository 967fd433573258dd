"""The learner's marines in a melee, and what is known of the opponent.

Marines that are sent to attack go to the nearest enemy that is known, else to where the opponent
began, else to the nearest ground that was never seen, until nothing is left to find.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.melee.grid import bytes_of, walkable_of
from sc2pool.tasks.minigames.towns.town import Point, Unit, at
from sc2pool.tasks.minigames.towns.unit_types import MARINE

STRUCTURE_RADIUS = 1.1
"""Units with a larger radius are taken for structures: Terran units on foot are smaller."""
REACHED_CELLS = 6.0
"""Ground that is nearer to a marine than this was looked at."""
LOST_GROUND, UNKNOWN = 1, 0
"""Values of the visibility grid."""


class Front:
    """The marines and the enemies of one observation.

    Attributes:
        marines: the learner's marines.
        enemies, enemy_structures: the enemy units and structures that are seen or remembered.
    """

    def __init__(self, game_info: sc_pb.ResponseGameInfo) -> None:
        start = game_info.start_raw
        self._starts = [(point.x, point.y) for point in start.start_locations]
        self._walkable = walkable_of(start.pathing_grid)
        self.marines: list[Unit] = []
        self.enemies: list[Unit] = []
        self.enemy_structures: list[Unit] = []
        self._visibility: NDArray[np.uint8] = np.zeros((0, 0), dtype=np.uint8)

    def update(self, observation: sc_pb.Observation) -> None:
        """Read an observation."""
        units = observation.raw_data.units
        enemies = [unit for unit in units if unit.alliance == raw_pb2.Enemy]
        self.marines = [
            unit for unit in units if unit.unit_type == MARINE and unit.alliance == raw_pb2.Self
        ]
        self.enemy_structures = [unit for unit in enemies if unit.radius > STRUCTURE_RADIUS]
        self.enemies = [unit for unit in enemies if unit.radius <= STRUCTURE_RADIUS]
        self._visibility = bytes_of(observation.raw_data.map_state.visibility)

    def near(self, place: Point, cells: float) -> int:
        """Number of enemy units near a place."""
        return sum(math.dist(at(unit), place) < cells for unit in self.enemies)

    def attack(self) -> Commands:
        """Send the marines that do nothing to the enemy."""
        idle = [unit for unit in self.marines if not unit.orders]
        if not idle:
            return []
        return [commands.attack([unit.tag for unit in idle], self._target(at(idle[0])))]

    def defend(self, place: Point) -> Commands:
        """Send all marines to a place; they attack what they meet."""
        tags = [unit.tag for unit in self.marines]
        return [commands.attack(tags, place)] if tags else []

    def _target(self, here: Point) -> Point:
        known = self.enemy_structures or self.enemies
        if known:
            return min((at(unit) for unit in known), key=lambda place: math.dist(place, here))
        for start in self._starts:
            if math.dist(start, here) > REACHED_CELLS and self._seen_at(start) == UNKNOWN:
                return start
        return self._dark_ground(here)

    def _seen_at(self, place: Point) -> int:
        height, width = self._visibility.shape
        inside = 0 <= place[0] < width and 0 <= place[1] < height
        return int(self._visibility[int(place[1]), int(place[0])]) if inside else UNKNOWN

    def _dark_ground(self, here: Point) -> Point:
        """The nearest ground that was never seen, else the nearest that is not seen now."""
        if self._visibility.shape != self._walkable.shape:
            return here
        for value in (UNKNOWN, LOST_GROUND):
            rows, columns = np.nonzero(self._walkable & (self._visibility == value))
            if len(rows):
                square = (columns + 0.5 - here[0]) ** 2 + (rows + 0.5 - here[1]) ** 2
                nearest = int(square.argmin())
                return float(columns[nearest]) + 0.5, float(rows[nearest]) + 0.5
        return here
