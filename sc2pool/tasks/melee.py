"""A melee: build a town, build marines, and destroy the opponent's town.

Rules:
- Only mineral fields and geysers near the command centre belong to the town. Structures stand on
  cells of the placement grid, with a free cell between any two structures, so that units can pass.
- Attacking marines go to the nearest known enemy structure, else to the nearest known enemy unit.
  If no enemy is known, the marines go to the opponent's start, then to the nearest unseen ground.

`MeleeImage` is for convolutional policies. The longer side of the playable area fills the image,
and the area's centre is the image's centre. Row 0 is at the image's top, column 0 at its left.
Units and structures are squares of their size; an unfinished one is darker. Minerals and free
supply have no place on the map, so each fills one of the last two planes with a single value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.config import Computer
from sc2pool.protocol.replies import result_of
from sc2pool.tasks.minigames import town as towns
from sc2pool.tasks.minigames.geometry import PlayableArea, bits_of, bytes_of, walkable_of
from sc2pool.tasks.minigames.move_to_beacon import IMAGE_SIZE
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    GEYSER,
    MARINE,
    MINERAL_FIELD,
    SCV,
    SUPPLY_DEPOT,
    TOWN_SIZE,
    Point,
    Town,
    Unit,
    at,
)
from sc2pool.tasks.task import Task

WAIT, GATHER_MINERALS, TRAIN_SCV, BUILD_DEPOT, BUILD_BARRACKS, TRAIN_MARINE = range(6)
ATTACK, DEFEND = 6, 7
N_ACTIONS = 8
STEPS = (*towns.FIRST_STEPS, towns.BUILD_DEPOT, towns.BUILD_BARRACKS, towns.TRAIN_MARINE)
"""The town's step for each action whose number is less than ATTACK."""
OBSERVATION_SIZE = TOWN_SIZE + 9
HOME_CELLS = 20.0
"""Enemies within this distance of the command centre, in cells, threaten it."""
VALUE_OF_A_WIN = 10_000.0
"""Destroyed units that cost this much, in minerals and gas, give the same reward as a win."""
_BONUS: dict[int | None, float] = {sc_pb.Victory: 1.0, sc_pb.Defeat: -1.0}


class Melee(Task):
    """Let the town grow, train marines, and destroy all structures of the opponent.

    Action space: `Discrete(8)`:

    * Action 0: do nothing.
    * Action 1: idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    * Action 2: train an SCV.
    * Actions 3 and 4: build a supply depot (3) or a barracks (4); fixed rules choose place and SCV.
    * Action 5: train a marine, in the barracks with the shortest queue.
    * Action 6: idle marines attack the nearest known enemy. If no enemy is known, the marines
      attack the opponent's start (see the file's docstring).
    * Action 7: all marines walk to the command centre, and attack enemies on the way.

    An action is masked, and does nothing, if minerals, supply, a structure, a place or marines for
    it are missing.

    The observation space is `Box(0, 1, (18,), float32)`, described at `observe`.

    Reward: 1 for a win, −1 for a defeat, and the cost of destroyed enemies / 10,000.

    The opponent is the game's easiest built-in one; a subclass can set other `opponents`.
    """

    map_name: ClassVar[str] = "Simple64"
    step_mul: ClassVar[int] = 16
    max_loops: ClassVar[int | None] = 20160
    opponents: ClassVar[tuple[Computer, ...]] = (Computer(common_pb2.Terran, sc_pb.VeryEasy),)
    action_space = spaces.Discrete(N_ACTIONS)
    observation_space: spaces.Box = spaces.Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    town: Home
    front: Front

    def on_start(self) -> None:
        self.town = Home(self.game_info, self.observation)
        self.front = Front(self.game_info)
        self._destroyed = 0.0

    def observe(self) -> NDArray[np.generic]:
        """Observe the town, the marines and the known enemies.

        Returns:
            (18,) float32, each in [0, 1]:

            Values 0 to 8: the values of `Town.vector`.
            Values 9 to 11: the number of barracks / 10, of barracks that are ordered or being built
            / 4, and of idle barracks / 10.
            Values 12 and 13: the number of marines / 100, and of idle marines / 100.
            Values 14 to 16: the number of known enemy units / 50, of those near the command centre
            / 20, and of known enemy structures / 20. Value 17: the loops played / 20160.
        """
        self.read_observation()
        town, front = self.town, self.front
        barracks = town.finished(BARRACKS)
        return town.vector(
            len(barracks) / 10,
            town.coming(BARRACKS) / 4,
            sum(not one.orders for one in barracks) / 10,
            len(town.all(MARINE)) / 100,
            sum(not one.orders for one in front.marines) / 100,
            len(front.enemies) / 50,
            front.near(town.centre, HOME_CELLS) / 20,
            len(front.enemy_structures) / 20,
            town.loop / 20160,
        )

    def read_observation(self) -> None:
        """Update the town and the units at the front from the newest observation."""
        self.town.update(self.observation)
        self.front.update(self.observation)

    def reward(self) -> float:
        details = self.observation.score.score_details
        destroyed = details.killed_value_units + details.killed_value_structures
        gained = (destroyed - self._destroyed) / VALUE_OF_A_WIN
        self._destroyed = destroyed
        result = result_of(self.response, self.observation.player_common.player_id)
        return gained + _BONUS.get(result, 0.0)

    def act(self, action: int) -> Commands:
        town, front = self.town, self.front
        if action < ATTACK:
            return towns.take(STEPS[action], town)
        return front.attack() if action == ATTACK else front.defend(town.centre)

    def action_masks(self) -> NDArray[np.bool_]:
        marines = self.front.marines
        at_the_front = any(not one.orders for one in marines), bool(marines)
        return np.append(towns.masks(STEPS, self.town), at_the_front)


MINERAL_FIELDS = frozenset({341, 483, 146, 147, 665, 666, 796, 797, 884, 885, 886, 887})
"""The ids of the types of mineral fields on the maps of the real game."""
GEYSERS = frozenset({342, 343, 344, 880, 881})
"""The ids of the types of geysers on the maps of the real game."""
NEAR_CELLS = 12.0
"""Mineral fields and geysers within this many cells of the command centre are the town's."""
BUILD_CELLS = 15.0
"""The largest distance of structures from the command centre, along each axis, in cells."""
PASSAGE_CELLS = 1.0
"""The number of free cells between two structures."""


class Home(Town):
    """The town around the first command centre in an observation; `centre` is its position."""

    def __init__(self, game_info: sc_pb.ResponseGameInfo, observation: sc_pb.Observation) -> None:
        area = PlayableArea.of(game_info)
        centres = [
            at(unit)
            for unit in observation.raw_data.units
            if unit.unit_type == COMMAND_CENTER and unit.alliance == 1
        ]
        self.centre = centres[0] if centres else area.centre
        x, y = self.centre
        near = PlayableArea(
            *area.clamp(x - BUILD_CELLS, y - BUILD_CELLS),
            *area.clamp(x + BUILD_CELLS, y + BUILD_CELLS),
        )
        super().__init__(near, bits_of(game_info.start_raw.placement_grid), PASSAGE_CELLS)

    def update(self, observation: sc_pb.Observation) -> None:
        super().update(observation)
        for name, types in ((MINERAL_FIELD, MINERAL_FIELDS), (GEYSER, GEYSERS)):
            found = [unit for kind in sorted(types) for unit in self._units.get(kind, ())]
            self._units[name] = [
                unit for unit in found if math.dist(at(unit), self.centre) < NEAR_CELLS
            ]


STRUCTURE_RADIUS = 1.1
"""Enemies with a radius above this count as structures; Terran foot units are smaller."""
REACHED_CELLS = 6.0
"""A start location counts as searched if it is nearer to the marines than this, in cells."""
LOST_GROUND, UNKNOWN = 1, 0
"""Values of the game's visibility grid: ground seen earlier, and ground never seen."""


class Front:
    """The learner's marines, and the enemy units and structures that are seen or remembered."""

    def __init__(self, game_info: sc_pb.ResponseGameInfo) -> None:
        start = game_info.start_raw
        self._starts = [(point.x, point.y) for point in start.start_locations]
        self._walkable = walkable_of(start.pathing_grid)
        self.marines: list[Unit] = []
        self.enemies: list[Unit] = []
        self.enemy_structures: list[Unit] = []
        self._visibility: NDArray[np.uint8] = np.zeros((0, 0), dtype=np.uint8)

    def update(self, observation: sc_pb.Observation) -> None:
        """Store an observation's marines, enemies and visibility grid."""
        units = observation.raw_data.units
        enemies = [unit for unit in units if unit.alliance == raw_pb2.Enemy]
        self.marines = [
            unit for unit in units if unit.unit_type == MARINE and unit.alliance == raw_pb2.Self
        ]
        self.enemy_structures = [unit for unit in enemies if unit.radius > STRUCTURE_RADIUS]
        self.enemies = [unit for unit in enemies if unit.radius <= STRUCTURE_RADIUS]
        self._visibility = bytes_of(observation.raw_data.map_state.visibility)

    def near(self, place: Point, cells: float) -> int:
        """The number of enemy units within a distance of a place."""
        return sum(math.dist(at(unit), place) < cells for unit in self.enemies)

    def attack(self) -> Commands:
        """Let the idle marines attack the enemy's units, structures or start."""
        idle = [unit for unit in self.marines if not unit.orders]
        if not idle:
            return []
        return [commands.attack([unit.tag for unit in idle], self._target(at(idle[0])))]

    def defend(self, place: Point) -> Commands:
        """Send all marines to a place; they attack enemies on the way."""
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
        """The nearest ground that was never seen, else the nearest that is not visible now."""
        if self._visibility.shape != self._walkable.shape:
            return here
        for value in (UNKNOWN, LOST_GROUND):
            rows, columns = np.nonzero(self._walkable & (self._visibility == value))
            if len(rows):
                square = (columns + 0.5 - here[0]) ** 2 + (rows + 0.5 - here[1]) ** 2
                nearest = int(square.argmin())
                return float(columns[nearest]) + 0.5, float(rows[nearest]) + 0.5
        return here


N_PLANES = 9


class MeleeImage(Melee):
    """A melee whose observations are images of the map from above.

    The action space is `Discrete(8)`, as in `Melee`.

    The observation space is `Box(0, 255, (9, 64, 64), uint8)`, with the planes as the first axis.
    The file's docstring says how the image shows the map.

    * Planes 0 to 3 show the own SCVs, command centres and supply depots, barracks, and marines.
    * Planes 4 and 5 show enemy units and enemy structures.
    * Plane 6 is the height of the terrain; it is 0 at places where no unit can walk.
    * Plane 7 is the amount of minerals (255 is 1000), and plane 8 the free supply (255 is 20).
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
    """Converts places on the map to pixels, and draws units and the terrain."""

    def __init__(self, area: PlayableArea) -> None:
        self._centre_x, self._centre_y = area.centre
        self._scale = IMAGE_SIZE / area.longer_side

    def draw(self, plane: NDArray[np.uint8], unit: Unit) -> None:
        """Draw a unit as a square of its size, darker if the unit is unfinished."""
        half = max(unit.radius, 0.5) * self._scale
        column = IMAGE_SIZE / 2 + (unit.pos.x - self._centre_x) * self._scale
        row = IMAGE_SIZE / 2 - (unit.pos.y - self._centre_y) * self._scale
        top, bottom, left, right = (
            min(max(int(at), 0), IMAGE_SIZE - 1)
            for at in (row - half, row + half, column - half, column + half)
        )
        plane[top : bottom + 1, left : right + 1] = 55 + round(200 * unit.build_progress)

    def terrain(self, game_info: sc_pb.ResponseGameInfo) -> NDArray[np.uint8]:
        """The height of the ground at the centre of each pixel, 0 where no unit can walk."""
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


ENOUGH_MARINES = 16
"""The number of marines with which the first attack begins."""


def play_melee(observation: NDArray[np.float32]) -> int:
    """Train sixteen SCVs, build four barracks and enough depots, then attack with 16 marines."""
    minerals, free_supply, workers = observation[[0, 3, 4]] * (1000, 20, 50)
    training, depots, depots_coming = observation[6:9] * (5, 20, 4)
    barracks, barracks_coming, empty = observation[9:12] * (10, 4, 10)
    marines, idle_marines = observation[12:14] * 100
    threats, structures = observation[15] * 20, observation[16] * 20
    wishes = (
        (GATHER_MINERALS, observation[5] > 0),
        (
            ATTACK,
            idle_marines > 0.5 and (marines >= ENOUGH_MARINES or threats > 0.5 or structures > 0.5),
        ),
        (
            BUILD_DEPOT,
            free_supply < 2 + 2 * barracks and depots_coming < 0.5 and minerals >= 100,
        ),
        (TRAIN_SCV, workers < 15.5 and training < 0.5 and minerals >= 50),
        (TRAIN_MARINE, empty > 0.5 and minerals >= 50),
        (
            BUILD_BARRACKS,
            barracks + barracks_coming < 3.5 and depots > 0.5 and minerals >= 150,
        ),
    )
    return next((action for action, wished in wishes if wished), WAIT)
