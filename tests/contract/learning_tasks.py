"""Tasks that algorithms train on; they travel to the workers by value, as a script's own would."""

from __future__ import annotations

import sys

import cloudpickle
import numpy as np
from gymnasium import spaces

from sc2pool import Task, commands
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.units import NEUTRAL, Kind, select

BEACONS = Kind("Beacon_Terran", NEUTRAL)
OWN_MARINES = Kind("Marine")

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Walk(Task):
    """Walk in any direction; its episodes are thirty steps long."""

    map_name = "MoveToBeacon"
    max_loops = 240
    observation_space = spaces.Box(-200, 200, (2,), np.float32)
    action_space = spaces.Box(-4, 4, (2,), np.float32)

    def observe(self):
        self.marines, self.beacons = select(self.lazy_observation, OWN_MARINES, BEACONS)
        return (self.beacons.positions[0] - self.marines.positions[0]).astype(np.float32)

    def act(self, action):
        x, y = self.marines.positions[0] + action
        return [commands.move(self.marines.tags, (float(x), float(y)))]


class Advised(MoveToBeacon):
    """Its masks rule out the four directions that lead away; its episodes are thirty steps long."""

    max_loops = 240

    def action_masks(self):
        x, y = self.observe()[:2]
        angles = np.arange(8) * np.pi / 4
        return x * np.cos(angles) + y * np.sin(angles) > -0.1


class OneAllowed(MoveToBeacon):
    """Each moment of each episode allows one action; any other is an error of the learner's.

    Its episodes are five steps long.
    """

    max_loops = 40

    def action_masks(self):
        mask = np.zeros(8, np.bool_)
        mask[(3 * self.episode.number + self.lazy_observation.game_loop // 8) % 8] = True
        return mask

    def act(self, action):
        if not self.action_masks()[action]:
            raise LookupError(f"action {action} is masked: {self.action_masks()}")
        return super().act(action)
