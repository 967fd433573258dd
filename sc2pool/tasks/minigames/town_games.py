"""The mini-games with a town: `CollectMineralsAndGas` and `BuildMarines`, also as images.

CollectMineralsAndGas: twelve SCVs, sixteen mineral fields, four geysers. The reward is +1 for each
mineral and each unit of gas that is brought to the command centre. All SCVs are idle at first. More
SCVs gather more, but need supply. Gas needs refineries.

BuildMarines: twelve SCVs, eight mineral fields. The reward is +1 for each marine. A marine needs a
barracks and supply, a barracks needs a supply depot, and all of them cost minerals.

The tasks with images are for convolutional policies. They inherit the actions of the tasks with a
vector, and differ only in the observation. Row 0 is the farthest up and column 0 the farthest left.
The longer side of the playable area fills the image, and the area's centre is the image's centre.
Structures are rectangles; the more finished they are, the brighter. Units are squares of one cell.
The last two planes have one value each: minerals and free supply, which have no place on the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.commands import Commands
from sc2pool.tasks.minigames import town as towns
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import IMAGE_SIZE
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
    TOWN_SIZE,
    Town,
    TownStep,
)
from sc2pool.tasks.task import Task

WAIT, GATHER_MINERALS, TRAIN_SCV, BUILD_DEPOT = range(4)
OBSERVATION_SIZE = TOWN_SIZE + 5


class TownGame(Task):
    """A mini-game in which each action is one step of the town."""

    steps: ClassVar[tuple[TownStep, ...]]
    """The effect of each action."""
    step_mul: ClassVar[int] = 32
    observation_space: spaces.Box = spaces.Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    town: Town

    def on_start(self) -> None:
        self.town = Town(PlayableArea.of(self.game_info))

    def act(self, action: int) -> Commands:
        return towns.take(self.steps[action], self.town)

    def action_masks(self) -> NDArray[np.bool_]:
        return towns.masks(self.steps, self.town)


# ---- CollectMineralsAndGas -----------------------------------------------------------------------


BUILD_REFINERY, GATHER_GAS = 4, 5
RESOURCE_STEPS = (*towns.FIRST_STEPS, towns.BUILD_DEPOT, towns.BUILD_REFINERY, towns.GATHER_GAS)


class CollectMineralsAndGas(TownGame):
    """Let the town grow: each action is one step of the town.

    Action space: `Discrete(6)`:

    - 0: Do nothing.
    - 1: Idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    - 2: Train an SCV.
    - 3: Build a supply depot. 4: Build a refinery. Rules choose the place and the SCV.
    - 5: One more SCV gathers gas, at a refinery with fewer than three SCVs.

    A step lasts 32 game loops; in most shorter steps, a player could only wait.

    An action is masked, and does nothing, if minerals, supply or a place for it are missing.

    Observation space: `Box(0, 1, (14,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "CollectMineralsAndGas"
    max_loops: ClassVar[int | None] = 6720
    steps = RESOURCE_STEPS
    action_space = spaces.Discrete(len(RESOURCE_STEPS))

    def observe(self) -> NDArray[np.generic]:
        """Observe the town.

        Returns:
            (14,) float32, each in [0, 1]:

            0 to 8: See `Town.vector`.
            9: Gas / 1000. 10: Refineries / 4. 11: Refineries that are coming / 4.
            12: Free places for SCVs at refineries / 12. 13: Loops played / 6720.
        """
        town = self.town
        town.update(self.observation)
        refineries = town.finished(REFINERY)
        places = sum(max(0, one.ideal_harvesters - one.assigned_harvesters) for one in refineries)
        return town.vector(
            town.vespene / 1000,
            len(refineries) / towns.N_GEYSERS,
            town.coming(REFINERY) / towns.N_GEYSERS,
            places / (3 * towns.N_GEYSERS),
            town.loop / 6720,
        )


# ---- BuildMarines --------------------------------------------------------------------------------


BUILD_BARRACKS, TRAIN_MARINE = 4, 5
MARINE_STEPS = (
    *towns.FIRST_STEPS,
    towns.BUILD_DEPOT_IN_TIME,
    towns.BUILD_BARRACKS,
    towns.TRAIN_MARINE,
)


class BuildMarines(TownGame):
    """Let the town grow, and train marines: each action is one step of the town.

    Action space: `Discrete(6)`:

    - 0: Do nothing.
    - 1: Idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    - 2: Train an SCV.
    - 3: Build a supply depot. 4: Build a barracks. Rules choose the place and the SCV.
    - 5: Train a marine, in the barracks with the shortest queue.

    A step lasts 32 game loops; in most shorter steps, a player could only wait.

    An action is masked, and does nothing, if minerals, supply, a structure or a place for it are
    missing. Action 3 is also masked while three or more supply are free per structure that trains
    units, because a random player would otherwise spend most minerals on supply depots. If action 3
    is chosen in spite of this second mask, the depot is built.

    Observation space: `Box(0, 1, (14,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "BuildMarines"
    max_loops: ClassVar[int | None] = 14400
    steps = MARINE_STEPS
    action_space = spaces.Discrete(len(MARINE_STEPS))

    def observe(self) -> NDArray[np.generic]:
        """Observe the town.

        Returns:
            (14,) float32, each in [0, 1]:

            0 to 8: See `Town.vector`.
            9: Barracks / 10. 10: Barracks that are coming / 4. 11: Idle barracks / 10.
            12: Marines / 200. 13: Loops played / 14400.
        """
        town = self.town
        town.update(self.observation)
        barracks = town.finished(BARRACKS)
        return town.vector(
            len(barracks) / 10,
            town.coming(BARRACKS) / 4,
            sum(not one.orders for one in barracks) / 10,
            len(town.all(MARINE)) / 200,
            town.loop / 14400,
        )


# ---- the games as images -------------------------------------------------------------------------


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
    """Draw each group of unit types in its own plane; the last two show minerals and supply."""
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
