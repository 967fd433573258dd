"""BuildMarines: twelve SCVs, eight mineral fields; +1 for each marine.

A marine needs a barracks, a barracks a supply depot, and all of them supply and minerals.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.commands import Commands
from sc2pool.tasks.minigames import town as towns
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.town import BARRACKS, MARINE, TOWN_SIZE, Town
from sc2pool.tasks.task import Task

WAIT, GATHER_MINERALS, TRAIN_SCV, BUILD_DEPOT = range(4)
BUILD_BARRACKS, TRAIN_MARINE = 4, 5
MARINE_STEPS = (
    towns.WAIT,
    towns.GATHER_MINERALS,
    towns.TRAIN_SCV,
    towns.BUILD_DEPOT_IN_TIME,
    towns.BUILD_BARRACKS,
    towns.TRAIN_MARINE,
)
"""The effect of each action."""
OBSERVATION_SIZE = TOWN_SIZE + 5


class BuildMarines(Task):
    """Let the town grow, and train marines: each action is one step of it.

    Action space: `Discrete(6)`:

    - 0: Do nothing.
    - 1: Idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    - 2: Train an SCV.
    - 3: Build a supply depot. 4: Build a barracks. Rules choose the place and the SCV.
    - 5: Train a marine, in the barracks with the shortest queue.

    A step lasts 32 game loops: in most shorter steps only waiting would be possible.

    An action that is not possible, for lack of minerals, supply, a structure or a place, is masked
    and does nothing. Action 3 is also masked while at least three supply are free for each
    structure that trains units. If it is chosen then, the depot is still built. Without this mask
    random possible actions would spend most minerals on supply depots.

    Observation space: `Box(0, 1, (14,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "BuildMarines"
    step_mul: ClassVar[int] = 32
    max_loops: ClassVar[int | None] = 14400
    action_space = spaces.Discrete(len(MARINE_STEPS))
    observation_space: spaces.Box = spaces.Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    town: Town

    def on_start(self) -> None:
        self.town = Town(PlayableArea.of(self.game_info))

    def observe(self) -> NDArray[np.generic]:
        """Look at the town.

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

    def act(self, action: int) -> Commands:
        return towns.take(MARINE_STEPS[action], self.town)

    def action_masks(self) -> NDArray[np.bool_]:
        return towns.masks(MARINE_STEPS, self.town)
