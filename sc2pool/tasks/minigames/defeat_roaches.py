"""DefeatRoaches: nine marines fight waves of four roaches; +10 per roach, -1 per lost marine.

Marines outrange roaches by one cell and walk as fast as roaches. So the choice of targets and the
position of hurt marines decide a fight. Each action is an order to the whole group of marines.
"""

from __future__ import annotations

from itertools import repeat
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import (
    N_DIRECTIONS,
    PlayableArea,
    bearing_of,
    rescue,
    walks,
)
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Floats, Kind, Units, distances, health, select, weapon_cooldown

ENEMY_ROACHES = Kind("Roach", ENEMY)
OWN_MARINES = Kind("Marine")

FOCUS_NEAREST = 0
FOCUS_WEAKEST = 1
RESCUE_HURT = 2
FIRST_WALK = 3
N_ACTIONS = FIRST_WALK + N_DIRECTIONS

MARINE_HEALTH = 45.0
ROACH_HEALTH = 145.0
ROACH_DAMAGE = 16.0
NEAR = 10.0
"""The unit of the distances in values 7 and 8 of an observation, in cells."""
N_ROACHES_SEEN = 4
OBSERVATION_SIZE = 9 + 4 * N_ROACHES_SEEN


class DefeatRoaches(Task):
    """Lead the marines as one group: shoot together, save hurt marines, or walk.

    Action space: `Discrete(11)`:

    * Action 0: all attack the roach nearest to the group's centre.
    * Action 1: all attack the roach with the fewest hit points (of several, the nearest).
    * Action 2: marines that one more hit would kill walk away from the nearest roach; the others
      attack as in action 1.
    * Actions 3 to 10: all walk, right (east) at action 3, then counter-clockwise in 45° steps.

    Actions 0 to 2 are masked, and do nothing, if no roach is in sight.

    The observation space is `Box(-1, 1, (25,), float32)`, described at `observe`.
    """

    map_name: ClassVar[str] = "DefeatRoaches"
    max_loops: ClassVar[int | None] = 1920
    action_space = spaces.Discrete(N_ACTIONS)
    observation_space = spaces.Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    area: PlayableArea
    marines: Units
    roaches: Units
    marine_health: Floats
    roach_health: Floats
    by_distance: list[int]
    """Indices of the roaches, the nearest to the centre of the marines first."""

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)

    def observe(self) -> NDArray[np.float32]:
        """Observe the battle.

        Returns:
            (25,) float32, each in [-1, 1]; zeros stand for missing units:

            Values 0 and 1: the number of marines / 20, and the number of roaches / 8.
            Values 2 and 3: the position (x, y) of the marines' centre relative to the area's
            centre, in halves of the area's longer side.
            Values 4 and 5: the mean and the lowest hit points of the marines / 45.
            Value 6: the share of the marines whose weapon is ready.
            Value 7: the smallest distance of a marine to a roach, in tens of cells, at most 1.
            Value 8: the distance from the marine with the fewest hit points to the nearest roach,
            in tens of cells, at most 1. A roach can hit that marine if value 8 is below 0.5.
            Values 9 to 24: four values for each of the four roaches nearest to the marines' centre:
            the unit vector (x, y) to the roach, its distance in lengths of the area's longer side,
            and its hit points / 145.
        """
        self.marines, self.roaches = select(self.lazy_observation, OWN_MARINES, ENEMY_ROACHES)
        self.marine_health = health(self.marines)
        self.roach_health = health(self.roaches)
        n_marines, n_roaches = len(self.marines), len(self.roaches)
        vector = np.zeros(OBSERVATION_SIZE, dtype=np.float32)
        vector[:2] = n_marines / 20, n_roaches / 8
        if n_marines:
            centre = self.marines.positions.mean(axis=0, keepdims=True)
            ((x, y),) = centre.tolist()
            vector[2:4] = self.area.relative(x, y)
            vector[4] = self.marine_health.mean() / MARINE_HEALTH
            vector[5] = self.marine_health.min() / MARINE_HEALTH
            vector[6] = np.mean(weapon_cooldown(self.marines) == 0)
        if n_marines and n_roaches:
            positions = self.roaches.positions
            nearest_roach = distances(self.marines.positions, positions).min(axis=1)
            vector[7] = nearest_roach.min() / NEAR
            vector[8] = nearest_roach[self.marine_health.argmin()] / NEAR
            from_centre = distances(centre, positions)[0]
            self.by_distance = np.argsort(from_centre, kind="stable").tolist()
            seen: list[float] = []
            for roach in self.by_distance[:N_ROACHES_SEEN]:
                roach_x, roach_y = positions[roach].tolist()
                seen += bearing_of(roach_x - x, roach_y - y, self.area.longer_side)
                seen.append(self.roach_health[roach] / ROACH_HEALTH)
            vector[9 : 9 + len(seen)] = seen
        return vector.clip(-1.0, 1.0, out=vector)

    def act(self, action: int) -> Commands:
        if action >= FIRST_WALK:
            # All marines walk in the same direction, so the group keeps its shape.
            return walks(self.marines, repeat(int(action) - FIRST_WALK), self.area)
        if not (len(self.marines) and len(self.roaches)):
            return []
        if action == FOCUS_NEAREST:
            return [commands.attack(self.marines.tags, self.roaches.tags[self.by_distance[0]])]
        weakest = self.roaches.tags[min(self.by_distance, key=self.roach_health.__getitem__)]
        if action == FOCUS_WEAKEST:
            return [commands.attack(self.marines.tags, weakest)]
        hurt = np.flatnonzero(self.marine_health <= ROACH_DAMAGE).tolist()
        return rescue(self.marines, hurt, self.roaches, weakest, self.area)

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(N_ACTIONS, dtype=np.bool_)
        masks[:FIRST_WALK] = len(self.marines) > 0 and len(self.roaches) > 0
        return masks
