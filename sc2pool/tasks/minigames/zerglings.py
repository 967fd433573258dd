"""The mini-games against zerglings, `FindAndDefeatZerglings` and `DefeatZerglingsAndBanelings`.

FindAndDefeatZerglings: three marines search a dark map for 25 zerglings. The reward is +1 for a
killed zergling and -1 for a lost marine. The observation contains only zerglings that the marines
see. The task adds the times at which the parts of the map were last seen, so that a policy without
memory can search. These parts of the map are equal blocks, and a block counts as seen if its centre
is near a marine. The game's own visibility grid is more detailed, but takes longer to read.

DefeatZerglingsAndBanelings: nine marines fight waves of six zerglings and four banelings. The
reward is +5 for a killed enemy and -1 for a lost marine. A baneling that reaches a group of marines
hurts all of them. So marines must shoot a baneling before it arrives, or stand apart.

The tasks with images are for convolutional policies. A task with images differs from the task with
a vector only in the observation. Row 0 is at the top, column 0 at the left. The centre of the
learner's units is always the centre of the image. The image extends in each direction by the length
of the playable area's longer side, so it always shows the whole area. Units are discs; a unit with
more hit points is brighter.
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
    DIRECTIONS,
    N_DIRECTIONS,
    PlayableArea,
    bearing_of,
    bearings,
    flights,
    nearest_direction,
    nearest_first,
    rescue,
    walk_target,
    walks,
)
from sc2pool.tasks.minigames.move_to_beacon import (
    IMAGE_SIZE,
    PIXEL_X,
    PIXEL_Y,
    SMALLEST_RADIUS_PX,
    draw_area,
)
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Floats, Kind, Units, distances, health, select, weapon_cooldown

ENEMY_BANELINGS = Kind("Baneling", ENEMY)
ENEMY_ZERGLINGS = Kind("Zergling", ENEMY)
OWN_MARINES = Kind("Marine")

MARINE_HEALTH = 45.0
ZERGLING_HEALTH = 35.0
NEAR = 10.0
"""The unit of distances to enemies and between marines, in cells. Distances on the map have the
area's longer side as unit."""


# ---- FindAndDefeatZerglings ----------------------------------------------------------------------


FOCUS_NEAREST = 0
FOCUS_WEAKEST = 1
RESCUE_HURT = 2
SEARCH_FIRST_WALK = 3
SEARCH_ACTIONS = SEARCH_FIRST_WALK + N_DIRECTIONS

N_ZERGLINGS_SEEN = 4
SEARCH_SIZE = 8 + 4 * N_ZERGLINGS_SEEN + 3 + N_DIRECTIONS


class FindAndDefeatZerglings(Task):
    """Search the map with three marines that stay together, and shoot the zerglings.

    Action space: `Discrete(11)`:

    * Action 0: all attack the zergling nearest to the group's centre.
    * Action 1: all attack the zergling with the fewest hit points (of several, the nearest).
    * Action 2: the marine with the fewest hit points walks away from the nearest zergling; the
      others attack as in action 0.
    * Actions 3 to 10: all walk to one point ahead of the group, and attack enemies on the way.
      Action 3 is right (east); the next ones follow counter-clockwise in steps of 45°.

    Actions 0 to 2 are masked, and do nothing, if no zergling is in sight.

    The observation space is `Box(-1, 1, (35,), float32)`, described at `observe`.
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
        """Observe the group and the zerglings in sight, and read the memory of the search.

        Returns:
            (35,) float32, each in [-1, 1]; zeros stand for missing units:

            Values 0 and 1: the number of marines / 3, and the number of zerglings in sight / 8.
            Values 2 and 3: the position (x, y) of the marines' centre relative to the area's
            centre, in halves of the area's longer side.
            Values 4 and 5: the mean and the lowest hit points of the marines / 45.
            Value 6: the share of the marines whose weapon is ready.
            Value 7: the distance from the marine with the fewest hit points to the nearest
            zergling, in tens of cells, at most 1.
            Values 8 to 23: four values for each of the four zerglings nearest to the marines'
            centre: the unit vector (x, y) to the zergling, its distance in tens of cells, and its
            hit points / 35.
            Values 24 to 26: the unit vector (x, y) to the block of the map to search next, and its
            distance in lengths of the area's longer side. The next block is the nearest one not
            seen for 36 seconds (800 loops), or else the block not seen for the longest time.
            Values 27 to 34: one value for each direction: the mean time since the blocks up to 12
            cells away were last seen. 0 is now; 1 is 36 seconds (800 loops) ago, or never.
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
        hurt = int(health(self.marines).argmin())
        return rescue(self.marines, [hurt], self.zerglings, nearest, self.area)

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(SEARCH_ACTIONS, dtype=np.bool_)
        masks[:SEARCH_FIRST_WALK] = len(self.marines) > 0 and len(self.zerglings) > 0
        return masks

    def centre(self) -> tuple[float, float]:
        """The centre of the marines; there must be at least one marine."""
        x, y = self.marines.positions.mean(axis=0).tolist()
        return x, y

    def _read_units(self) -> None:
        """Read the units from the observation, and store which blocks are seen now."""
        self.marines, self.zerglings = select(self.lazy_observation, OWN_MARINES, ENEMY_ZERGLINGS)
        self.memory.note_seen(self.marines.positions, self.lazy_observation.game_loop)


BLOCK_SIDE = 4.0
"""The side of a block, in cells. The real side may differ, because equal blocks fill the area."""
CLEAR_SIGHT = 8.0
"""Up to this distance, in cells, a marine surely sees a whole unit. A marine's sight is 9."""
FORGOTTEN_LOOPS = 800
"""After this many game loops, a block counts as unseen again: zerglings may have come since."""
SURVEYED_CELLS = 12.0
"""`ages_by_direction` counts only the blocks within this many cells of its point (x, y)."""


class SearchMemory:
    """Records when each block of the playable area was last seen."""

    def __init__(self, area: PlayableArea) -> None:
        columns = max(1, round((area.right - area.left) / BLOCK_SIDE))
        rows = max(1, round((area.top - area.bottom) / BLOCK_SIDE))
        x = area.left + (np.arange(columns) + 0.5) * (area.right - area.left) / columns
        y = area.bottom + (np.arange(rows) + 0.5) * (area.top - area.bottom) / rows
        self.shape = rows, columns
        self.middles = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        """The map coordinates of the blocks' centres, (n, 2), row by row from the bottom."""
        self._seen_at = np.full(len(self.middles), -float(FORGOTTEN_LOOPS))
        self._loop = 0

    def note_seen(self, eyes: Floats, loop: int) -> None:
        """Mark the blocks around `eyes`, the units' positions, as seen at this loop."""
        self._loop = loop
        if len(eyes):
            self._seen_at[distances(self.middles, eyes).min(axis=1) <= CLEAR_SIGHT] = loop

    def ages(self) -> Floats:
        """The time since each block was last seen, (n,): 0 is now, 1 is 800 loops or never."""
        return np.clip((self._loop - self._seen_at) / FORGOTTEN_LOOPS, 0.0, 1.0)

    def nearest_forgotten(self, x: float, y: float) -> NDArray[np.float64]:
        """The centre, (2,), of the block to visit: the nearest block of age 1, else the oldest."""
        offsets = self.middles - (x, y)
        ages = self.ages()
        # Age outweighs distance, which decides only between blocks of the same age.
        cost = np.hypot(offsets[:, 0], offsets[:, 1]) - 1e4 * ages
        return np.asarray(self.middles[cost.argmin()])

    def ages_by_direction(self, x: float, y: float) -> NDArray[np.float32]:
        """The mean age of the blocks in each direction, (8,); 0 for a direction without blocks."""
        offsets = self.middles - (x, y)
        lengths = np.hypot(offsets[:, 0], offsets[:, 1])
        towards = np.argmax(offsets @ np.array(DIRECTIONS).T, axis=1)
        near = lengths <= SURVEYED_CELLS
        count = np.bincount(towards[near], minlength=len(DIRECTIONS))
        total = np.bincount(towards[near], self.ages()[near], minlength=len(DIRECTIONS))
        return (total / np.maximum(count, 1)).astype(np.float32)


# ---- DefeatZerglingsAndBanelings -----------------------------------------------------------------


FIRE_AT_WILL = 0
FOCUS_BANELINGS = 1
SPREAD = 2
FALL_BACK = 3
BATTLE_FIRST_WALK = 4
BATTLE_ACTIONS = BATTLE_FIRST_WALK + N_DIRECTIONS

DANGER = 3.5
"""A marine nearer than this to a baneling's centre, in cells, is about to be hit."""
N_SEEN = 4
"""The observation contains this many enemies of each type, the nearest first."""
BATTLE_SIZE = 10 + 2 * 3 * N_SEEN


class DefeatZerglingsAndBanelings(Task):
    """Lead the marines as one group: choose targets, spread, fall back, or walk.

    Action space: `Discrete(12)`:

    * Action 0: each marine attacks the enemy nearest to it.
    * Action 1: each marine attacks the nearest baneling, or acts as in action 0 if there is none.
    * Action 2: each marine walks away from the centre of the marines within 3 cells of it.
    * Action 3: marines within 3.5 cells of a baneling walk away; the others attack as in action 1.
    * Actions 4 to 11: all walk, right (east) at action 4, then counter-clockwise in 45° steps.

    Actions 0, 1 and 3 are masked, and do nothing, if no enemy is in sight.

    The observation space is `Box(-1, 1, (34,), float32)`, described at `observe`.
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
        """Observe the battle.

        Returns:
            (34,) float32, each in [-1, 1]; zeros stand for missing units:

            Values 0 to 2: the number of marines / 40, of zerglings / 6, and of banelings / 4.
            Values 3 and 4: the position (x, y) of the marines' centre relative to the area's
            centre, in halves of the area's longer side.
            Values 5 and 6: the mean and the lowest hit points of the marines / 45.
            Value 7: the share of the marines whose weapon is ready.
            Value 8: the mean distance of the marines to their centre, in tens of cells.
            Value 9: the share of the marines within 3.5 cells of a baneling.
            Values 10 to 21: three values for each of the four zerglings nearest to the marines'
            centre: the unit vector (x, y), and the distance in lengths of the area's longer side.
            Values 22 to 33: unit vector and distance of the four banelings nearest to the centre.
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
            *flights(self.marines, np.flatnonzero(threatened), self.banelings, self.area),
            *self._attack(np.flatnonzero(~threatened), targets),
        ]

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(BATTLE_ACTIONS, dtype=np.bool_)
        enemies = len(self.zerglings) + len(self.banelings)
        masks[[FIRE_AT_WILL, FOCUS_BANELINGS, FALL_BACK]] = len(self.marines) > 0 and enemies > 0
        return masks

    def _read_units(self) -> None:
        """Read the units from the observation."""
        self.marines, self.zerglings, self.banelings = select(
            self.lazy_observation, OWN_MARINES, ENEMY_ZERGLINGS, ENEMY_BANELINGS
        )

    def _in_danger(self) -> NDArray[np.bool_]:
        """For each marine, whether a baneling is about to hit it, (n,) bool."""
        to_banelings = distances(self.marines.positions, self.banelings.positions)
        return np.asarray((to_banelings < DANGER).any(axis=1))

    def _attack(self, marines: NDArray[np.intp], enemies: list[Units]) -> Commands:
        """Each of these marines attacks its nearest enemy, with one command per target."""
        if not len(marines):
            return []
        tags = [tag for units in enemies for tag in units.tags]
        places = np.concatenate([units.positions for units in enemies])
        nearest = distances(self.marines.positions[marines], places).argmin(axis=1).tolist()
        groups: dict[int, list[int]] = {}
        for marine, target in zip(marines.tolist(), nearest, strict=True):
            groups.setdefault(target, []).append(self.marines.tags[marine])
        return [commands.attack(group, tags[target]) for target, group in groups.items()]

    def _apart(self) -> list[int]:
        """For each marine, the direction away from the centre of the marines near it."""
        places: Floats = self.marines.positions
        near = distances(places, places) < 3.0
        away = places - near @ places / np.maximum(near.sum(axis=1, keepdims=True), 1)
        return [nearest_direction(x, y) for x, y in away.tolist()]


# ---- the games as images -------------------------------------------------------------------------


BANELING_HEALTH = 30.0
_PIXELS = np.stack(np.broadcast_arrays(PIXEL_X, PIXEL_Y))
"""(2, 64, 64): the x and y of each pixel's centre, in pixels from the image's centre."""


class FindAndDefeatZerglingsImage(FindAndDefeatZerglings):
    """FindAndDefeatZerglings with images of the map from above as observations.

    The action space is `Discrete(11)`, as in `FindAndDefeatZerglings`.

    The observation space is `Box(0, 255, (3, 64, 64), uint8)`, with the planes as the first axis.
    Plane 0 shows marines, and plane 1 the zerglings in sight. Plane 2 shows how long ago each block
    of the playable area was last seen: 0 is now (or outside the area), and 255 is 36 seconds (800
    loops) ago or never. The file's docstring says how the image shows the map.
    """

    observation_space = spaces.Box(0, 255, (3, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self._read_units()
        image = np.zeros((3, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        if len(self.marines):
            middle = np.array(self.centre())
            draw_units(image[0], self.marines, MARINE_HEALTH, middle, self.area)
            draw_units(image[1], self.zerglings, ZERGLING_HEALTH, middle, self.area)
            self._draw_ages(image[2], middle)
        return image

    def _draw_ages(self, plane: NDArray[np.uint8], middle: Floats) -> None:
        area, (rows, columns) = self.area, self.memory.shape
        x, y = _PIXELS * (2 * area.longer_side / IMAGE_SIZE) + middle[:, None, None]
        row = np.floor((y - area.bottom) / max(area.top - area.bottom, 1.0) * rows).astype(int)
        column = np.floor((x - area.left) / max(area.right - area.left, 1.0) * columns).astype(int)
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        ages = (self.memory.ages().reshape(rows, columns) * 255).astype(np.uint8)
        plane[inside] = ages[row[inside], column[inside]]


class DefeatZerglingsAndBanelingsImage(DefeatZerglingsAndBanelings):
    """DefeatZerglingsAndBanelings with images of the battle from above as observations.

    The action space is `Discrete(12)`, as in `DefeatZerglingsAndBanelings`.

    The observation space is `Box(0, 255, (4, 64, 64), uint8)`, with the planes as the first axis.
    Plane 0 shows marines, plane 1 zerglings, plane 2 banelings. Plane 3 is 255 on the playable
    area. The file's docstring says how the image shows the map.
    """

    observation_space = spaces.Box(0, 255, (4, IMAGE_SIZE, IMAGE_SIZE), np.uint8)

    def observe(self) -> NDArray[np.generic]:
        self._read_units()
        image = np.zeros((4, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
        if len(self.marines):
            x, y = self.marines.positions.mean(axis=0).tolist()
            middle = np.array((x, y))
            draw_units(image[0], self.marines, MARINE_HEALTH, middle, self.area)
            draw_units(image[1], self.zerglings, ZERGLING_HEALTH, middle, self.area)
            draw_units(image[2], self.banelings, BANELING_HEALTH, middle, self.area)
            draw_area(image[3], x, y, self.area, IMAGE_SIZE / 2 / self.area.longer_side)
        return image


def draw_units(
    plane: NDArray[np.uint8], units: Units, full_health: float, middle: Floats, area: PlayableArea
) -> None:
    """Draw a disc for each unit in `plane`; its brightness is the unit's share of `full_health`.

    The brightest disc is on top. `middle`, (2,), is the map point at the image's centre.
    """
    if not len(units):
        return
    brightness = np.clip(health(units) / full_health * 255, 1, 255).astype(np.uint8)
    places = (units.positions - middle) * (IMAGE_SIZE / 2 / area.longer_side)
    for place, value in zip(places, brightness, strict=True):
        x, y = _PIXELS - place[:, None, None]
        covered = x * x + y * y <= SMALLEST_RADIUS_PX**2
        plane[covered] = np.maximum(plane[covered], value)
