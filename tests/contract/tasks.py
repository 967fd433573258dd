"""Tasks for the contract's tests and their trainings; the classes are sent to workers by value."""

from __future__ import annotations

import sys

import cloudpickle
import numpy as np
from gymnasium import spaces

from sc2pool import Task, commands
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.units import NEUTRAL, Kind, select

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Masked(MoveToBeacon):
    """Each step allows one of the eight actions, in turn; the episodes have four steps."""

    max_loops = 32
    times_asked = 0

    def action_masks(self):
        mask = np.zeros(8, np.bool_)
        mask[self.times_asked % 8] = True
        self.times_asked += 1
        return mask


class SometimesMasked(Masked):
    """If `rests` is true, gives no mask in the first, third, … step."""

    rests = False

    def action_masks(self):
        mask = super().action_masks()
        return None if self.rests and self.times_asked % 2 else mask


class Resting(SometimesMasked):
    """Gives no mask in its first step."""

    rests = True


class Placed(MoveToBeacon):
    """Observes where the marine is on the map; its episodes are three steps long."""

    observation_space = spaces.Box(0, 200, (2,), np.float32)
    max_loops = 24

    def observe(self):
        super().observe()
        return self.marines.positions[0].astype(np.float32)


class PlacedBot(MoveToBeaconBot):
    """The task `Placed`, written as a python-sc2 bot."""

    observation_space = Placed.observation_space
    max_loops = 24

    def observe(self):
        return np.array(self.units.first.position, np.float32)


class Painting(Placed):
    """Draws frames whose only colour value is ten times the episode's number plus the game loop."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012

    def render(self):
        return np.full((4, 6, 3), 10 * self.episode.number + self.observation.game_loop, np.uint8)


class Paid(MoveToBeacon):
    """Episode t has three steps; the first step gives the whole return, (5 t) % 7."""

    max_loops = 24

    def reward(self):
        return (5 * self.episode.number) % 7 if self.observation.game_loop == 8 else 0


class PaidBot(MoveToBeaconBot):
    """The task `Paid`, written as a python-sc2 bot."""

    max_loops = 24

    def reward(self):
        return (5 * self.episode.number) % 7 if self.state.game_loop == 8 else 0


class Failing(Paid):
    """A task whose method `reward` raises an error."""

    def reward(self):
        raise LookupError("as asked")


BEACONS = Kind("Beacon_Terran", NEUTRAL)
OWN_MARINES = Kind("Marine")


class Walk(Task):
    """Walk in any direction. An episode has thirty steps."""

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
    """The masks forbid the four directions away from the beacon. An episode has thirty steps."""

    max_loops = 240

    def action_masks(self):
        x, y = self.observe()[:2]
        angles = np.arange(8) * np.pi / 4
        return x * np.cos(angles) + y * np.sin(angles) > -0.1


class OneAllowed(MoveToBeacon):
    """Each step of an episode allows one action; any other raises an error.

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
