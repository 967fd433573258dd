"""Pairs of units that walk: who overlaps, who is nearest, when two of them meet.

There are two ways to look at all pairs, with the same results to the last bit: `Few` loops over
them, `Many` uses square arrays. One operation on arrays costs as much as the loop over ten pairs,
whatever their number, so the loop is faster for few units and much slower for many. `pair_loops`
chooses, and has a third one, compiled, which is faster than both.

Rules it keeps: a sum is taken in the order of the units; a distance is the root of a sum of squares
(`math.hypot` and `math.dist` round differently).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from math import sqrt

import numpy as np

from sc2standin.simulation.units import NEUTRAL, Point, Unit
from sc2standin.simulation.world import World

MANY = 26
"""Number of units from which on arrays are faster, in fights of equal sides."""

MIN_SCAN = 5.0
SCAN_MARGIN = 0.5
"""Scan range beyond the weapon's range, in cells; the scan range is at least MIN_SCAN."""

PUSH_SHARE = 0.25
"""Share of an overlap that each of the two units moves away in one loop."""
TINY = 1e-9

NO_TOUCH = -1.0
"""Distance at which a unit touches another one that it passes over, or under: never."""

STILL = (0.0, 0.0)

Pushes = dict[int, Point]
"""Push of each unit that others move away, in cells per loop; by index."""


class Pairs(ABC):
    """The units that walk, numbered, until one is created, dies or is detected; their places."""

    def __init__(self, world: World) -> None:
        self.version = world.population_version
        self.units = units = world.walkers
        self.index = {unit.tag: i for i, unit in enumerate(units)}
        kinds = {(unit.owner, unit.type): unit for unit in units}
        targets = {
            kind: dict.fromkeys(
                i for i, other in enumerate(units) if is_target(unit, other) and not other.unseen
            )
            for kind, unit in kinds.items()
        }
        self.hostile = any(targets.values())
        """True if some of the units are enemies."""
        self._targets = [targets[unit.owner, unit.type] for unit in units]
        """The enemies that each unit can fire at, by index, in ascending order."""
        self.weapons = [unit.type.weapon for unit in units]
        self.healers = [i for i, unit in enumerate(units) if unit.type.heals is not None]
        """The units that heal others, by index."""
        self.scan = [_scan(unit, world.clients) for unit in units]
        """Distance at which each unit notices an enemy, edge to edge; 0 without a weapon."""
        self.closest = [_closest(unit) for unit in units]
        """Gap below which each unit cannot fire at another one."""
        self._radius = [unit.type.radius for unit in units]
        self._x: list[float] = []
        self._y: list[float] = []

    def measure(self) -> None:
        """Take the units' places of this loop."""
        self._x = [unit.x for unit in self.units]
        self._y = [unit.y for unit in self.units]

    def gap(self, i: int, j: int) -> float:
        """Distance between the edges of two units, in cells; negative if they overlap."""
        dx, dy = self._x[j] - self._x[i], self._y[j] - self._y[i]
        return sqrt(dx * dx + dy * dy) - (self._radius[i] + self._radius[j])

    @abstractmethod
    def nearest_enemy(self, i: int) -> tuple[int, float]:
        """The nearest enemy of a unit that is not too close, and its gap; the older of two.

        The gap is infinite if there is none.
        """

    @abstractmethod
    def pushes(self) -> Pushes | None:
        """The pushes by which units that overlap move apart; None if no units overlap.

        Two units at the same point separate along the x axis, the older one to the left.
        """

    @abstractmethod
    def loops_until_contact(self, moving: dict[Unit, Point]) -> float:
        """Loops until a unit first touches another or notices an enemy.

        `moving` has the velocity of each unit that moves.
        """


def hostile(owner: int, other: int) -> bool:
    """True if the units of two owners are enemies."""
    return owner != other and NEUTRAL not in (owner, other)


def is_target(unit: Unit, other: Unit) -> bool:
    """True if a unit may fire at another one."""
    weapon = unit.type.weapon
    return hostile(unit.owner, other.owner) and (weapon is None or weapon.hits(other.type))


def _scan(unit: Unit, clients: frozenset[int]) -> float:
    weapon = unit.type.weapon
    if weapon is None:
        return 0.0
    if not unit.type.mobile:
        return weapon.reach
    scan = max(weapon.reach + SCAN_MARGIN, MIN_SCAN)
    # A computer's units scan as far as they see.
    return scan if unit.owner in clients else max(unit.type.sight, scan)


def _closest(unit: Unit) -> float:
    weapon = unit.type.weapon
    return weapon.min_range if weapon is not None and weapon.min_range else -math.inf


class Few(Pairs):
    """A loop over the pairs."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        radius, scan = self._radius, self.scan
        self._pairs: list[tuple[int, int, float, float]] = []
        """Of each pair: the older unit, the younger one, the distance at which they touch, and the
        gap at which one notices the other."""
        for i in range(len(self.units)):
            for j in range(i + 1, len(self.units)):
                notice = max(
                    scan[i] if j in self._targets[i] else 0.0,
                    scan[j] if i in self._targets[j] else 0.0,
                )
                touch = radius[i] + radius[j]
                if self.units[i].type.aloft != self.units[j].type.aloft:
                    notice, touch = notice + touch - NO_TOUCH, NO_TOUCH
                self._pairs.append((i, j, touch, notice))

    def nearest_enemy(self, i: int) -> tuple[int, float]:
        xs, ys, radius = self._x, self._y, self._radius
        x, y, own_radius, closest = xs[i], ys[i], radius[i], self.closest[i]
        nearest, least = -1, math.inf
        for j in self._targets[i]:
            dx, dy = xs[j] - x, ys[j] - y
            gap = sqrt(dx * dx + dy * dy) - (own_radius + radius[j])
            if closest <= gap < least:
                nearest, least = j, gap
        return nearest, least

    def pushes(self) -> Pushes | None:
        xs, ys, n = self._x, self._y, len(self.units)
        sum_x: list[float] = []
        sum_y: list[float] = []
        for i, j, touch, _ in self._pairs:
            # Most pairs are further apart along one axis; they need no root.
            dx = xs[j] - xs[i]
            if dx >= touch or -dx >= touch:
                continue
            dy = ys[j] - ys[i]
            if dy >= touch or -dy >= touch:
                continue
            distance = sqrt(dx * dx + dy * dy)
            gap = distance - touch
            if gap >= 0.0:
                continue
            if not sum_x:
                sum_x, sum_y = [0.0] * n, [0.0] * n
            if distance == 0.0:
                push_x, push_y = gap, 0.0
            else:
                distance = max(distance, TINY)
                push_x, push_y = dx / distance * gap, dy / distance * gap
            sum_x[i] += push_x
            sum_y[i] += push_y
            sum_x[j] -= push_x
            sum_y[j] -= push_y
        if not sum_x:
            return None
        pushes = {}
        for i in range(n):
            x, y = sum_x[i] * PUSH_SHARE, sum_y[i] * PUSH_SHARE
            if x != 0.0 or y != 0.0:
                push = _limited(x, y, self.units[i].type.step / 2)
                if push != STILL:  # what cannot walk is not pushed either
                    pushes[i] = push
        return pushes

    def loops_until_contact(self, moving: dict[Unit, Point]) -> float:
        xs, ys = self._x, self._y
        velocities = [moving.get(unit, STILL) for unit in self.units]
        soonest = math.inf
        for i, j, touch, notice in self._pairs:
            vx, vy = velocities[i]
            other_vx, other_vy = velocities[j]
            closing_x, closing_y = vx - other_vx, vy - other_vy
            speed = sqrt(closing_x * closing_x + closing_y * closing_y)
            if speed == 0.0:
                continue
            dx, dy = xs[j] - xs[i], ys[j] - ys[i]
            slack = sqrt(dx * dx + dy * dy) - touch - notice
            soonest = min(soonest, slack / speed)
        return soonest


def _limited(x: float, y: float, most: float) -> Point:
    """A vector, cut to a length of `most`."""
    length = sqrt(x * x + y * y)
    if length <= most:
        return x, y
    share = most / length
    return x * share, y * share


class Many(Pairs):
    """Square arrays, one row and one column for each unit."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        n = len(self.units)
        radius, scan = np.array(self._radius), np.array(self.scan)
        self._radius_sum = radius[:, None] + radius
        np.fill_diagonal(self._radius_sum, -np.inf)  # a unit does not collide with itself
        is_target = np.zeros((n, n), dtype=np.bool_)
        for i, targets in enumerate(self._targets):
            is_target[i, list(targets)] = True
        self._no_target = np.where(is_target, 0.0, np.inf)
        closest = np.array(self.closest)
        self._closest = closest[:, None] if (closest > -np.inf).any() else None
        """`closest` as a column; None if no unit has a weapon with a least range."""
        notice = np.where(is_target, scan[:, None], 0.0)
        self._notice = np.maximum(notice, notice.T)
        aloft = np.array([unit.type.aloft for unit in self.units])
        self._apart = None if not aloft.any() or aloft.all() else aloft[:, None] != aloft
        """The pairs that do not collide; None if all others do."""
        self._half_step = np.array([unit.type.step / 2 for unit in self.units])

    def measure(self) -> None:
        super().measure()
        x, y = np.array(self._x), np.array(self._y)
        # [i, j] is from unit j to unit i.
        self._offset_x, self._offset_y = x[:, None] - x, y[:, None] - y
        self._distance = np.sqrt(self._offset_x**2 + self._offset_y**2)
        self._gap = self._distance - self._radius_sum
        self._nearest: list[tuple[int, float]] = []

    def nearest_enemy(self, i: int) -> tuple[int, float]:
        if not self._nearest:
            gap = self._gap + self._no_target
            if self._closest is not None:
                gap = np.where(self._gap < self._closest, np.inf, gap)
            nearest = gap.argmin(axis=1)
            least = gap[np.arange(len(gap)), nearest]
            self._nearest = list(zip(nearest.tolist(), least.tolist(), strict=True))
        return self._nearest[i]

    def pushes(self) -> Pushes | None:
        overlap = np.minimum(self._gap, 0.0)
        if self._apart is not None:
            overlap[self._apart] = 0.0
        if not overlap.any():
            return None
        distance = np.maximum(self._distance, TINY)
        to_x, to_y = self._offset_x / distance, self._offset_y / distance
        same_spot = (self._distance == 0.0) & (overlap < 0.0)
        if same_spot.any():
            younger = np.tril(np.ones(same_spot.shape), -1)
            to_x = np.where(same_spot, younger - younger.T, to_x)
        # Along the first axis numpy adds row after row; along the second, in another order.
        x = (to_x * overlap).sum(axis=0) * PUSH_SHARE
        y = (to_y * overlap).sum(axis=0) * PUSH_SHARE
        share = np.minimum(1.0, self._half_step / np.maximum(np.sqrt(x**2 + y**2), TINY))
        both = zip((x * share).tolist(), (y * share).tolist(), strict=True)
        return {i: push for i, push in enumerate(both) if push != STILL}

    def loops_until_contact(self, moving: dict[Unit, Point]) -> float:
        velocity = np.array([moving.get(unit, STILL) for unit in self.units])
        closing = velocity[:, None, :] - velocity
        speed = np.sqrt(closing[:, :, 0] ** 2 + closing[:, :, 1] ** 2)
        slack = self._gap - self._notice
        if self._apart is not None:
            notice = self._notice + self._radius_sum - NO_TOUCH
            slack = np.where(self._apart, self._distance - NO_TOUCH - notice, slack)
        with np.errstate(divide="ignore", invalid="ignore"):
            loops = np.where(speed > 0.0, slack / speed, np.inf)
        return float(loops.min())
