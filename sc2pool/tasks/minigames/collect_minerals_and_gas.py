"""CollectMineralsAndGas: twelve SCVs, sixteen mineral fields, four geysers.

+1 for each mineral and each unit of gas that is brought to the command centre. All SCVs are idle at
first. More SCVs gather more, but need supply. Gas needs refineries.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.commands import Commands
from sc2pool.tasks.minigames import town as towns
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.town import REFINERY, TOWN_SIZE, Town
from sc2pool.tasks.task import Task

WAIT, GATHER_MINERALS, TRAIN_SCV, BUILD_DEPOT = range(4)
BUILD_REFINERY, GATHER_GAS = 4, 5
RESOURCE_STEPS = (
    towns.WAIT,
    towns.GATHER_MINERALS,
    towns.TRAIN_SCV,
    towns.BUILD_DEPOT,
    towns.BUILD_REFINERY,
    towns.GATHER_GAS,
)
"""The effect of each action."""
OBSERVATION_SIZE = TOWN_SIZE + 5


class CollectMineralsAndGas(Task):
    """Let the town grow: each action is one step of it.

    Action space: `Discrete(6)`:

    - 0: Do nothing.
    - 1: Idle SCVs gather minerals, each at the nearest field with fewer than two SCVs.
    - 2: Train an SCV.
    - 3: Build a supply depot. 4: Build a refinery. Rules choose the place and the SCV.
    - 5: One more SCV gathers gas, at a refinery with fewer than three.

    A step lasts 32 game loops: in most shorter steps only waiting would be possible.

    An action that is not possible, for lack of minerals, supply or a place, is masked and does
    nothing.

    Observation space: `Box(0, 1, (14,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "CollectMineralsAndGas"
    step_mul: ClassVar[int] = 32
    max_loops: ClassVar[int | None] = 6720
    action_space = spaces.Discrete(len(RESOURCE_STEPS))
    observation_space: spaces.Box = spaces.Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    town: Town

    def on_start(self) -> None:
        self.town = Town(PlayableArea.of(self.game_info))

    def observe(self) -> NDArray[np.generic]:
        """Look at the town.

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

    def act(self, action: int) -> Commands:
        return towns.take(RESOURCE_STEPS[action], self.town)

    def action_masks(self) -> NDArray[np.bool_]:
        return towns.masks(RESOURCE_STEPS, self.town)
