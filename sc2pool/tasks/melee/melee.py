"""Melee: build marines, and win against the built-in computer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import Commands
from sc2pool.config import Computer
from sc2pool.tasks.melee.front import Front
from sc2pool.tasks.melee.home import Home
from sc2pool.tasks.minigames.towns import steps
from sc2pool.tasks.minigames.towns.town import TOWN_SIZE
from sc2pool.tasks.minigames.towns.unit_types import BARRACKS, MARINE
from sc2pool.tasks.task import Task

WAIT, GATHER_MINERALS, TRAIN_SCV, BUILD_DEPOT, BUILD_BARRACKS, TRAIN_MARINE = range(6)
ATTACK, DEFEND = 6, 7
N_ACTIONS = 8
STEPS = (
    steps.WAIT,
    steps.GATHER_MINERALS,
    steps.TRAIN_SCV,
    steps.BUILD_DEPOT,
    steps.BUILD_BARRACKS,
    steps.TRAIN_MARINE,
)
"""The effect of each action before ATTACK."""
OBSERVATION_SIZE = TOWN_SIZE + 9
HOME_CELLS = 20.0
"""Enemies nearer to the command centre than this threaten it."""
VALUE_OF_A_WIN = 10_000.0
"""Minerals and gas: what was destroyed counts as much as a win if it was worth this."""


class Melee(Task):
    """Let the town grow, train marines, and destroy all structures of the opponent.

    Action space: `Discrete(8)`:

    - 0: nothing,
    - 1: idle SCVs gather minerals, each at the nearest field with fewer than two SCVs,
    - 2: train an SCV,
    - 3: build a supply depot, 4: build a barracks; a place and an SCV are chosen,
    - 5: train a marine, in the barracks with the fewest in its queue,
    - 6: idle marines attack: the nearest known enemy, else where the opponent began,
    - 7: all marines come home.

    An action that is not possible, for lack of minerals, supply, a structure, a place or marines,
    is masked and does nothing.

    Observation space: `Box(0, 1, (18,), float32)`, see `observe`.

    Reward: 1 for a win, −1 for a defeat, and the cost of what was destroyed / 10,000.

    The opponent is the easiest computer; a subclass with other `opponents` has a stronger one.
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
        """Look at the town and at the front.

        Returns:
            (18,) float32, each in [0, 1]:

            0 to 8: see `Town.vector`,
            9: barracks / 10, 10: barracks that are coming / 4, 11: barracks that train nothing
            / 10, 12: marines / 100, 13: marines without an order / 100,
            14: enemy units that are seen / 50, 15: those of them near the command centre / 20,
            16: enemy structures that are known / 20, 17: loops played / 20160.
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
        """Read the newest observation."""
        self.town.update(self.observation)
        self.front.update(self.observation)

    def reward(self) -> float:
        details = self.observation.score.score_details
        destroyed = details.killed_value_units + details.killed_value_structures
        gained = (destroyed - self._destroyed) / VALUE_OF_A_WIN
        self._destroyed = destroyed
        return gained + self._result()

    def _result(self) -> float:
        """1 for a win, −1 for a defeat, 0 for all else."""
        me = self.observation.player_common.player_id
        for one in self.response.player_result:
            if one.player_id == me:
                return {sc_pb.Victory: 1.0, sc_pb.Defeat: -1.0}.get(one.result, 0.0)
        return 0.0

    def act(self, action: int) -> Commands:
        town, front = self.town, self.front
        if action < ATTACK:
            return steps.take(STEPS[action], town)
        return front.attack() if action == ATTACK else front.defend(town.centre)

    def action_masks(self) -> NDArray[np.bool_]:
        marines = self.front.marines
        at_the_front = any(not one.orders for one in marines), bool(marines)
        return np.append(steps.masks(STEPS, self.town), at_the_front)
