"""DefeatZerglingsAndBanelings: nine marines against six zerglings and four banelings.

+5 for each enemy, -1 for a marine, then the next wave. A baneling that reaches a group of marines
hurts all of them. So marines must shoot it earlier, or stand apart.
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
    bearings,
    flight_target,
    nearest_direction,
    walks,
)
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Floats, Kind, Units, distances, health, select, weapon_cooldown

ENEMY_BANELINGS = Kind("Baneling", ENEMY)
ENEMY_ZERGLINGS = Kind("Zergling", ENEMY)
OWN_MARINES = Kind("Marine")

FIRE_AT_WILL = 0
FOCUS_BANELINGS = 1
SPREAD = 2
FALL_BACK = 3
BATTLE_FIRST_WALK = 4
BATTLE_ACTIONS = BATTLE_FIRST_WALK + N_DIRECTIONS

MARINE_HEALTH = 45.0
NEAR = 10.0
"""The unit of distances within a fight; distances on the map use the area's longer side."""
DANGER = 3.5
"""A marine nearer than this to a baneling's middle is about to be hit, in cells."""
N_SEEN = 4
"""How many enemies of each type the observation contains, the nearest first."""
BATTLE_SIZE = 10 + 2 * 3 * N_SEEN


class DefeatZerglingsAndBanelings(Task):
    """Lead the marines as one group: choose targets, spread, fall back, or walk.

    Action space: `Discrete(12)`:

    - 0: Each marine attacks the enemy nearest to it.
    - 1: Each marine attacks the baneling nearest to it, or acts as in 0 without banelings.
    - 2: Each marine walks away from the middle of the marines within 3 cells of it.
    - 3: The marines within 3.5 cells of a baneling walk away from it, the others attack as in 1.
    - 4 to 11: All walk. 4 is right (east), then counter-clockwise in steps of 45°.

    Actions 0, 1 and 3 are masked, and do nothing, while no enemy is in sight.

    Observation space: `Box(-1, 1, (34,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "DefeatZerglingsAndBanelings"
    max_loops: ClassVar[int | None] = 1920
    action_space = spaces.Discrete(BATTLE_ACTIONS)
    observation_space: spaces.Box = spaces.Box(-1.0, 1.0, (BATTLE_SIZE,), np.float32)

    area: PlayableArea
    marines: Units
    zerglings: Units
    banelings: Units

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)

    def observe(self) -> NDArray[np.generic]:
        """Look at the battle.

        Returns:
            (34,) float32, each in [-1, 1]; zeros stand for missing units:

            0: Number of marines / 40. 1: Number of zerglings / 6. 2: Number of banelings / 4.
            3, 4: Position (x, y) of the marines' centre relative to the area's, in halves of the
            area's longer side.
            5, 6: Mean and lowest hit points of the marines / 45.
            7: Share of the marines whose weapon is ready.
            8: Mean distance of the marines to their centre, in tens of cells.
            9: Share of the marines within 3.5 cells of a baneling.
            10 to 21: The four zerglings nearest to the marines' centre. For each: the unit vector
            (x, y) towards it and its distance in lengths of the longer side.
            22 to 33: The same for the banelings.
        """
        self._read_units()
        vector = np.zeros(BATTLE_SIZE, dtype=np.float32)
        places = self.marines.positions
        n_marines = len(places)
        vector[:3] = n_marines / 40, len(self.zerglings) / 6, len(self.banelings) / 4
        if n_marines:
            x, y = places.mean(axis=0).tolist()
            marine_health = health(self.marines)
            vector[3:5] = self.area.relative(x, y)
            vector[5] = marine_health.mean() / MARINE_HEALTH
            vector[6] = marine_health.min() / MARINE_HEALTH
            vector[7] = np.mean(weapon_cooldown(self.marines) == 0)
            vector[8] = np.hypot(places[:, 0] - x, places[:, 1] - y).mean() / NEAR
            vector[9] = self._in_danger().mean()
            for first, enemies in ((10, self.zerglings), (22, self.banelings)):
                order = np.argsort(distances(np.array([(x, y)]), enemies.positions)[0])[:N_SEEN]
                seen = bearings(x, y, enemies.positions[order], self.area.longer_side)
                vector[first : first + seen.size] = seen.ravel()
        return vector.clip(-1.0, 1.0, out=vector)

    def act(self, action: int) -> Commands:
        if action >= BATTLE_FIRST_WALK:
            return walks(self.marines, repeat(int(action) - BATTLE_FIRST_WALK), self.area)
        if action == SPREAD:
            return walks(self.marines, self._apart(), self.area)
        targets = [self.banelings] if len(self.banelings) else [self.zerglings]
        if action == FIRE_AT_WILL:
            targets = [self.zerglings, self.banelings]
        if not (len(self.marines) and any(map(len, targets))):
            return []
        threatened = self._in_danger() & (action == FALL_BACK)
        return [
            *self._fall_back(np.flatnonzero(threatened)),
            *self._attack(np.flatnonzero(~threatened), targets),
        ]

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(BATTLE_ACTIONS, dtype=np.bool_)
        enemies = len(self.zerglings) + len(self.banelings)
        masks[[FIRE_AT_WILL, FOCUS_BANELINGS, FALL_BACK]] = len(self.marines) > 0 and enemies > 0
        return masks

    def _read_units(self) -> None:
        """Read the units."""
        self.marines, self.zerglings, self.banelings = select(
            self.lazy_observation, OWN_MARINES, ENEMY_ZERGLINGS, ENEMY_BANELINGS
        )

    def _in_danger(self) -> NDArray[np.bool_]:
        """For each marine, whether a baneling is about to hit it, (n,) bool."""
        to_banelings = distances(self.marines.positions, self.banelings.positions)
        return np.asarray((to_banelings < DANGER).any(axis=1))

    def _attack(self, marines: NDArray[np.intp], enemies: list[Units]) -> Commands:
        """Each of these marines attacks the enemy nearest to it, with one command per target."""
        if not len(marines):
            return []
        tags = [tag for units in enemies for tag in units.tags]
        places = np.concatenate([units.positions for units in enemies])
        nearest = distances(self.marines.positions[marines], places).argmin(axis=1).tolist()
        groups: dict[int, list[int]] = {}
        for marine, target in zip(marines.tolist(), nearest, strict=True):
            groups.setdefault(target, []).append(self.marines.tags[marine])
        return [commands.attack(group, tags[target]) for target, group in groups.items()]

    def _fall_back(self, marines: NDArray[np.intp]) -> Commands:
        """Each of these marines walks away from the baneling nearest to it."""
        orders = []
        for marine in marines.tolist():
            place = self.marines.positions[marine]
            away = flight_target(place, self.banelings.positions, self.area)
            orders.append(commands.move([self.marines.tags[marine]], away))
        return orders

    def _apart(self) -> list[int]:
        """For each marine the direction away from the middle of its neighbours."""
        places: Floats = self.marines.positions
        near = distances(places, places) < 3.0
        away = places - near @ places / np.maximum(near.sum(axis=1, keepdims=True), 1)
        return [nearest_direction(x, y) for x, y in away.tolist()]
