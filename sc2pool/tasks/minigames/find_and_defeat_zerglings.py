"""FindAndDefeatZerglings: three marines, a dark map, 25 zerglings; +1 a zergling, -1 a marine.

The observation contains only zerglings that the marines see. So that a policy without memory can
search, the task adds when each part of the map was last seen. For that the map is divided into
blocks. A block counts as seen if its middle is near a marine. The game's own visibility grid is
more detailed, but takes longer to read.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import (
    DIRECTIONS,
    N_DIRECTIONS,
    PlayableArea,
    bearing_of,
    bearings,
    flight_target,
    nearest_first,
    walk_target,
)
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Floats, Kind, Units, distances, health, select, weapon_cooldown

ENEMY_ZERGLINGS = Kind("Zergling", ENEMY)
OWN_MARINES = Kind("Marine")

FOCUS_NEAREST = 0
FOCUS_WEAKEST = 1
RESCUE_HURT = 2
SEARCH_FIRST_WALK = 3
SEARCH_ACTIONS = SEARCH_FIRST_WALK + N_DIRECTIONS

MARINE_HEALTH = 45.0
ZERGLING_HEALTH = 35.0
NEAR = 10.0
"""The unit of distances within sight; distances on the map use the area's longer side."""
N_ZERGLINGS_SEEN = 4
SEARCH_SIZE = 8 + 4 * N_ZERGLINGS_SEEN + 3 + N_DIRECTIONS


class FindAndDefeatZerglings(Task):
    """Search the map with three marines that stay together, and shoot the zerglings.

    Action space: `Discrete(11)`:

    - 0: All attack the zergling nearest to the group's centre.
    - 1: All attack the zergling with the fewest hit points (of several, the nearest).
    - 2: The marine with the fewest hit points walks away from the nearest zergling, the others
      attack as in 0.
    - 3 to 10: All walk to one point ahead of the group, and attack enemies on the way. 3 is right
      (east), then counter-clockwise in steps of 45°.

    Actions 0 to 2 are masked, and do nothing, while no zergling is in sight.

    Observation space: `Box(-1, 1, (35,), float32)`, see `observe`.
    """

    map_name: ClassVar[str] = "FindAndDefeatZerglings"
    max_loops: ClassVar[int | None] = 2880
    action_space = spaces.Discrete(SEARCH_ACTIONS)
    observation_space: spaces.Box = spaces.Box(-1.0, 1.0, (SEARCH_SIZE,), np.float32)

    area: PlayableArea
    memory: SearchMemory
    marines: Units
    zerglings: Units

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)
        self.memory = SearchMemory(self.area)

    def observe(self) -> NDArray[np.generic]:
        """Look at the group, the zerglings in sight, and the memory of the search.

        Returns:
            (35,) float32, each in [-1, 1]; zeros stand for missing units:

            0: Number of marines / 3. 1: Number of zerglings in sight / 8.
            2, 3: Position (x, y) of the marines' centre relative to the area's, in halves of the
            area's longer side.
            4, 5: Mean and lowest hit points of the marines / 45.
            6: Share of the marines whose weapon is ready.
            7: Distance between the marine with the fewest hit points and the zergling nearest to
            it, in tens of cells, at most 1.
            8 to 23: The four zerglings nearest to the centre. For each: the unit vector (x, y)
            towards it, its distance in tens of cells, and its hit points / 35.
            24, 25, 26: Unit vector (x, y) to the part of the map to search next, and its distance
            in lengths of the longer side. It is the nearest part not seen for 36 seconds (800
            loops), else the one not seen for longest.
            27 to 34: For each of the eight directions, the mean age of the last sight of the map up
            to 12 cells away. 0 is now, 1 is 36 seconds (800 loops) or never.
        """
        self._read_units()
        vector = np.zeros(SEARCH_SIZE, dtype=np.float32)
        n_marines, n_zerglings = len(self.marines), len(self.zerglings)
        vector[:2] = n_marines / 3, n_zerglings / 8
        if n_marines:
            x, y = self.centre()
            marine_health = health(self.marines)
            vector[2:4] = self.area.relative(x, y)
            vector[4] = marine_health.mean() / MARINE_HEALTH
            vector[5] = marine_health.min() / MARINE_HEALTH
            vector[6] = np.mean(weapon_cooldown(self.marines) == 0)
            goal_x, goal_y = self.memory.nearest_forgotten(x, y).tolist()
            vector[24:27] = bearing_of(goal_x - x, goal_y - y, self.area.longer_side)
            vector[27:] = self.memory.ages_by_direction(x, y)
        if n_marines and n_zerglings:
            positions = self.zerglings.positions
            weakest = self.marines.positions[[marine_health.argmin()]]
            vector[7] = distances(weakest, positions).min() / NEAR
            order = nearest_first(self.zerglings, self.marines)[:N_ZERGLINGS_SEEN]
            seen = vector[8 : 8 + 4 * len(order)].reshape(-1, 4)
            seen[:, :3] = bearings(x, y, positions[order], NEAR)
            seen[:, 3] = health(self.zerglings)[order] / ZERGLING_HEALTH
        return vector.clip(-1.0, 1.0, out=vector)

    def act(self, action: int) -> Commands:
        if not len(self.marines):
            return []
        if action >= SEARCH_FIRST_WALK:
            x, y = self.centre()
            target = walk_target(x, y, int(action) - SEARCH_FIRST_WALK, self.area)
            return [commands.attack(self.marines.tags, target)]
        if not len(self.zerglings):
            return []
        order = nearest_first(self.zerglings, self.marines)
        nearest = self.zerglings.tags[order[0]]
        if action == FOCUS_NEAREST:
            return [commands.attack(self.marines.tags, nearest)]
        if action == FOCUS_WEAKEST:
            weakest = order[health(self.zerglings)[order].argmin()]
            return [commands.attack(self.marines.tags, self.zerglings.tags[weakest])]
        return self._rescue_hurt(nearest)

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(SEARCH_ACTIONS, dtype=np.bool_)
        masks[:SEARCH_FIRST_WALK] = len(self.marines) > 0 and len(self.zerglings) > 0
        return masks

    def centre(self) -> tuple[float, float]:
        """The middle of the marines, of which there must be at least one."""
        x, y = self.marines.positions.mean(axis=0).tolist()
        return x, y

    def _read_units(self) -> None:
        """Read the units, and store which blocks are seen now."""
        self.marines, self.zerglings = select(self.lazy_observation, OWN_MARINES, ENEMY_ZERGLINGS)
        self.memory.note_seen(self.marines.positions, self.lazy_observation.game_loop)

    def _rescue_hurt(self, target_tag: int) -> Commands:
        """The weakest marine walks away; the others attack."""
        hurt = int(health(self.marines).argmin())
        away = flight_target(self.marines.positions[hurt], self.zerglings.positions, self.area)
        orders = [commands.move([self.marines.tags[hurt]], away)]
        fighters = [tag for tag in self.marines.tags if tag != self.marines.tags[hurt]]
        if fighters:
            orders.append(commands.attack(fighters, target_tag))
        return orders


BLOCK_SIDE = 4.0
"""The approximate side of a block, in cells: a whole number of equal blocks fills the area."""
CLEAR_SIGHT = 8.0
"""The distance up to which a marine surely sees a whole unit, in cells. Its sight is 9."""
FORGOTTEN_LOOPS = 800
"""The age at which a block counts as unseen: zerglings may have come back, or a new wave."""
SURVEYED_CELLS = 12.0
"""The range of `ages_by_direction`, in cells."""


class SearchMemory:
    """Records when each block of the playable area was last seen."""

    def __init__(self, area: PlayableArea) -> None:
        columns = max(1, round((area.right - area.left) / BLOCK_SIDE))
        rows = max(1, round((area.top - area.bottom) / BLOCK_SIDE))
        x = area.left + (np.arange(columns) + 0.5) * (area.right - area.left) / columns
        y = area.bottom + (np.arange(rows) + 0.5) * (area.top - area.bottom) / rows
        self.shape = rows, columns
        self.middles = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        """(n, 2) map coordinates, row by row from the bottom."""
        self._seen_at = np.full(len(self.middles), -float(FORGOTTEN_LOOPS))
        self._loop = 0

    def note_seen(self, eyes: Floats, loop: int) -> None:
        """Mark the blocks around `eyes`, the units' positions, as seen at this loop."""
        self._loop = loop
        if len(eyes):
            self._seen_at[distances(self.middles, eyes).min(axis=1) <= CLEAR_SIGHT] = loop

    def ages(self) -> Floats:
        """The age of each block's last sight, (n,): 0 is now, 1 is forgotten or never seen."""
        return np.clip((self._loop - self._seen_at) / FORGOTTEN_LOOPS, 0.0, 1.0)

    def nearest_forgotten(self, x: float, y: float) -> NDArray[np.float64]:
        """The middle of the block to visit next, (2,): the nearest forgotten one, else the
        oldest."""
        offsets = self.middles - (x, y)
        ages = self.ages()
        # An age outweighs every distance unless both blocks are forgotten.
        cost = np.hypot(offsets[:, 0], offsets[:, 1]) - 1e4 * ages
        return np.asarray(self.middles[cost.argmin()])

    def ages_by_direction(self, x: float, y: float) -> NDArray[np.float32]:
        """The mean age of the blocks in each of the eight directions, (8,); 0 without a block."""
        offsets = self.middles - (x, y)
        lengths = np.hypot(offsets[:, 0], offsets[:, 1])
        towards = np.argmax(offsets @ np.array(DIRECTIONS).T, axis=1)
        near = lengths <= SURVEYED_CELLS
        count = np.bincount(towards[near], minlength=len(DIRECTIONS))
        total = np.bincount(towards[near], self.ages()[near], minlength=len(DIRECTIONS))
        return (total / np.maximum(count, 1)).astype(np.float32)
