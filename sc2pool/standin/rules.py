"""The rules of a map: place units, collect targets, start waves.

A rule is applied after a unit was created or died, and otherwise not before the loop that it
returned: the earliest loop at which it can have an effect. So skipping the loops in between changes
nothing.
"""

from __future__ import annotations

import math
from heapq import heapreplace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from sc2pool.standin import orders
from sc2pool.standin.scenario import Collect, Group, Waves
from sc2pool.standin.terrain import Terrain
from sc2pool.standin.world import ENEMY, ME, NEUTRAL, NEVER, Unit, World

Floats = NDArray[np.float64]

EDGE_MARGIN = 2.0
"""Minimum distance of a placed unit to the edge of the playable area, in cells."""
LINE_SPACING = 1.5
"""Distance between neighbours in a line, in cells, if there is room for it."""
LINE_JITTER = 0.25
"""Maximum random offset of a unit from its place in a line, so that waves differ."""
CANDIDATES = 32
"""Points tried for a place with a minimum distance; if none fits, the farthest is taken."""


class Placement:
    """Finds places for units, with the episode's random generator."""

    def __init__(self, terrain: Terrain, rng: np.random.Generator) -> None:
        self._low = terrain.low + EDGE_MARGIN
        self._high = terrain.high - EDGE_MARGIN
        self._rng = rng
        self._side = 0

    def draw_side(self) -> None:
        """Choose at random which of the two sides `side` means from now on."""
        self._side = int(self._rng.integers(2))

    def points(self, group: Group) -> Floats:
        """Places for a group of units."""
        if group.place == "random":
            return self._rng.uniform(self._low, self._high, (group.count, 2))
        return self.line(group.count, opposite=group.place == "opposite")

    def line(self, count: int, *, opposite: bool) -> Floats:
        """A vertical line of places at one side."""
        x = (self._low, self._high)[self._side ^ int(opposite)][0]
        room = float(self._high[1] - self._low[1])
        spacing = min(LINE_SPACING, room / max(1, count - 1))
        y = (self._low[1] + self._high[1]) / 2 + spacing * (np.arange(count) - (count - 1) / 2)
        line = np.column_stack([np.full(count, x), y])
        return line + self._rng.uniform(-LINE_JITTER, LINE_JITTER, line.shape)

    def away_from(self, others: list[Unit], min_distance: float, count: int) -> Floats:
        """Random places at least `min_distance` from all the others."""
        candidates = self._rng.uniform(self._low, self._high, (count, CANDIDATES, 2))
        if not others:
            return candidates[:, 0]
        offset = candidates[:, :, None, :] - np.array([(unit.x, unit.y) for unit in others])
        nearest = np.sqrt((offset**2).sum(axis=-1)).min(axis=-1)
        fits = nearest >= min_distance
        choice = np.where(fits.any(axis=1), fits.argmax(axis=1), nearest.argmax(axis=1))
        return np.asarray(candidates[np.arange(count), choice])


def place_group(world: World, placement: Placement, group: Group) -> None:
    """Create the units of a group."""
    world.spawn(group.type, group.owner, placement.points(group).tolist())


class CollectRule:
    """Creates the targets of a `Collect` and scores those that are reached."""

    def __init__(self, rule: Collect, world: World, placement: Placement) -> None:
        self._rule = rule
        self._world = world
        self._placement = placement
        self._version = -1
        self._mine: list[Unit] = []
        self._looks: list[tuple[int, int, Unit]] = []
        """A heap: the earliest loop at which a target can be reached, its tag, the target."""

    def start(self) -> None:
        """Lay out the first targets."""
        self._lay_out()

    def apply(self) -> int:
        """Score the targets that were reached; returns the next loop to apply the rule at."""
        world, rule = self._world, self._rule
        if self._version != world.population_version:
            self._version = world.population_version
            self._mine = [unit for unit in world.walkers if unit.owner == ME]
            self._looks = [(0, unit.tag, unit) for unit in world.units if unit.type is rule.target]
        if not self._mine:
            return NEVER
        taken = self._reached()
        if taken:
            world.score += rule.score * len(taken)
            self._replace(taken)
            return world.loop + 1
        return self._looks[0][0] if self._looks else NEVER

    def _reached(self) -> list[Unit]:
        """The targets within reach of a unit, the oldest first."""
        loop, reach = self._world.loop, self._rule.reach
        places = [(unit.x, unit.y) for unit in self._mine]
        # A unit that is pushed may move up to half a step faster than it walks.
        fastest = 1.5 * max(unit.type.step for unit in self._mine)
        reached = []
        while self._looks and self._looks[0][0] <= loop:
            _, tag, target = self._looks[0]
            target_x, target_y = target.x, target.y
            nearest = math.inf
            for x, y in places:
                dx, dy = target_x - x, target_y - y
                nearest = min(nearest, dx * dx + dy * dy)
            distance = math.sqrt(nearest)
            if distance <= reach:
                reached.append(target)
            earliest = loop + max(1, int((distance - reach) / fastest))
            heapreplace(self._looks, (earliest, tag, target))
        reached.sort(key=attrgetter("tag"))
        return reached

    def _replace(self, taken: list[Unit]) -> None:
        world, rule = self._world, self._rule
        if rule.taken == "moves":
            mine = world.owned_by(ME)
            places = self._placement.away_from(mine, rule.min_distance, len(taken))
            world.put(taken, places.tolist())
            return
        world.bury(taken)
        if all(unit.type is not rule.target for unit in world.units):
            self._lay_out()

    def _lay_out(self) -> None:
        world, rule = self._world, self._rule
        points = self._placement.away_from(world.owned_by(ME), rule.min_distance, rule.count)
        world.spawn(rule.target, NEUTRAL, points.tolist())


class WavesRule:
    """Sends the next wave when no enemy is left."""

    def __init__(self, rule: Waves, world: World, placement: Placement) -> None:
        self._rule = rule
        self._world = world
        self._placement = placement

    def start(self) -> None:
        """The first wave is on the map from the start."""

    def apply(self) -> int:
        """Start a wave if no enemy is left; only a death can change that."""
        world = self._world
        if world.owned_by(ENEMY):
            return NEVER
        self._placement.draw_side()
        for group in self._rule.units:
            place_group(world, self._placement, group)
        orders.forget_all(world)
        for owner, opposite in ((ME, False), (ENEMY, True)):
            units = world.owned_by(owner)
            world.put(units, self._placement.line(len(units), opposite=opposite).tolist())
        return NEVER
