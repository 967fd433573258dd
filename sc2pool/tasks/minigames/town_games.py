"""The mini-games with a town, each with a vector or an image as observation.

CollectMineralsAndGas has twelve SCVs, sixteen mineral fields and four geysers. The reward is +1 for
each mineral and each unit of gas that is brought to the command centre. At first, all SCVs are
idle. Each new SCV needs supply, and gas needs a refinery.

BuildMarines has twelve SCVs and eight mineral fields. The reward is +1 for each marine. A marine
needs a barracks and supply, a barracks needs a supply depot, and all of them cost minerals.

The tasks with images are for convolutional policies. A task with images differs from the task with
a vector only in the observation. Row 0 is at the top, column 0 at the left. The longer side of the
playable area fills the image, and the area's centre is the image's centre. Structures are
rectangles; an unfinished one is darker. Units are squares of one cell. Minerals and free supply
have no place on the map, so each fills one of the last two planes with one value.
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
    """The town's step for each action."""
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

    * Action 0: do nothing.
    * Action 1: idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    * Action 2: train an SCV.
    * Actions 3 and 4: build a supply depot (3) or a refinery (4); fixed rules choose place and SCV.
    * Action 5: one more SCV gathers gas, at a refinery with fewer than three SCVs.

    A step lasts 32 game loops. If steps were shorter, a player could only wait in most of them.

    An action is masked, and does nothing, if minerals, supply or a place for it are missing.

    The observation space is `Box(0, 1, (14,), float32)`, described at `observe`.
    """

    map_name: ClassVar[str] = "CollectMineralsAndGas"
    max_loops: ClassVar[int | None] = 6720
    steps = RESOURCE_STEPS
    action_space = spaces.Discrete(len(RESOURCE_STEPS))

    def observe(self) -> NDArray[np.generic]:
        """Observe the town.

        Returns:
            (14,) float32, each in [0, 1]:

            Values 0 to 8: the values of `Town.vector`. Value 9: gas / 1000. Value 13: loops / 6720.
            Values 10 and 11: the number of refineries / 4, and of those ordered or being built / 4.
            Value 12: the number of free places for SCVs at refineries / 12.
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

    * Action 0: do nothing.
    * Action 1: idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    * Action 2: train an SCV.
    * Actions 3 and 4: build a supply depot (3) or a barracks (4); fixed rules choose place and SCV.
    * Action 5: train a marine, in the barracks with the shortest queue.

    A step lasts 32 game loops. If steps were shorter, a player could only wait in most of them.

    An action is masked, and does nothing, if minerals, supply, a structure or a place for it are
    missing. Action 3 is also masked if the free supply is at least 3 per structure that trains
    units. Without this mask, a random player would spend most minerals on supply depots. If action
    3 is chosen although enough supply is free, the depot is built.

    The observation space is `Box(0, 1, (14,), float32)`, described at `observe`.
    """

    map_name: ClassVar[str] = "BuildMarines"
    max_loops: ClassVar[int | None] = 14400
    steps = MARINE_STEPS
    action_space = spaces.Discrete(len(MARINE_STEPS))

    def observe(self) -> NDArray[np.generic]:
        """Observe the town.

        Returns:
            (14,) float32, each in [0, 1]:

            Values 0 to 8: the values of `Town.vector`.
            Values 9 to 11: barracks / 10, barracks ordered or being built / 4, idle barracks / 10.
            Value 12: the number of marines / 200. Value 13: the loops played / 14400.
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
    """CollectMineralsAndGas with images of the town from above as observations.

    The action space is `Discrete(6)`, as in `CollectMineralsAndGas`.

    The observation space is `Box(0, 255, (6, 64, 64), uint8)`, with the planes as the first axis.
    Plane 0 shows SCVs, plane 1 command centres and supply depots, plane 2 mineral fields, plane 3
    geysers (half as bright) and refineries. Plane 4 is minerals (255 is 1000), plane 5 free supply
    (255 is 20). The file's docstring says how the image shows the map.
    """

    observation_space = spaces.Box(0, 255, (N_PLANES, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self.town.update(self.observation)
        kinds = ((SCV,), (COMMAND_CENTER, SUPPLY_DEPOT), (MINERAL_FIELD,), (GEYSER, REFINERY))
        return town_image(self.town, kinds)


class BuildMarinesImage(BuildMarines):
    """BuildMarines with images of the town from above as observations.

    The action space is `Discrete(6)`, as in `BuildMarines`.

    The observation space is `Box(0, 255, (6, 64, 64), uint8)`, with the planes as the first axis.
    Plane 0 shows SCVs, plane 1 command centres and supply depots, plane 2 barracks, plane 3
    marines. Plane 4 is minerals (255 is 1000), plane 5 free supply (255 is 20). The file's
    docstring says how the image shows the map.
    """

    observation_space = spaces.Box(0, 255, (N_PLANES, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self.town.update(self.observation)
        kinds = ((SCV,), (COMMAND_CENTER, SUPPLY_DEPOT), (BARRACKS,), (MARINE,))
        return town_image(self.town, kinds)


def town_image(town: Town, kinds: Sequence[tuple[int, ...]]) -> NDArray[np.uint8]:
    """Draw each group of unit types in one plane; the last two planes show minerals and supply."""
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
