"""Pairs of units that walk: nearest enemies, units in the way, and the time until units meet.

`_pairs` is a compiled copy of the program loops in this file, with the same results to the last
bit. `pairs_of` chooses the compiled loops if they are available. SC2POOL_PURE=1 forbids compiled
loops. An installation without a compiler has no compiled loops.

Python loops and compiled loops add numbers in the order of the units. Both compute a distance as
the root of a sum of squares, because `math.hypot` and `math.dist` round differently. Compiled loops
change only the speed, so one process of a match may use compiled loops, and the other process none.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from enum import IntEnum
from math import sqrt

from sc2standin.simulation.units import NEUTRAL, Point, Unit, Way
from sc2standin.simulation.world import World

MIN_SCAN = 5.0
SCAN_MARGIN = 0.5
"""A unit's scan range is its weapon's range plus SCAN_MARGIN, and at least MIN_SCAN, in cells."""

TINY = 1e-9
NO_TOUCH = -1.0
"""The touching distance for a pair of units that never touch, because one passes over the other."""
STILL = (0.0, 0.0)

ROUNDS = 3
"""How many times per game loop overlapping units are moved apart; a move may cause new overlaps."""
AHEAD = 1.0
"""Distance within which a unit looks for other units in its way, in cells."""
GRAZE = 0.98
"""A unit is in another unit's way at less than this share of the distance at which they touch."""
TURNS = tuple(
    (math.cos(angle), math.sin(angle)) for angle in (math.pi / 12 * k for k in range(1, 9))
)
"""The turns by which a unit may walk around other units: cosine and sine of angles up to 120°."""


class Ground(IntEnum):
    """How a unit on the ground reacts when other units want to pass."""

    YIELDS = 0
    IS_HELD_UP = 1
    """The other units walk around this one, although they could push it aside."""
    FIGHTS = 2
    """The other units walk around this one, and cannot push it aside."""


class Pairs:
    """Units that walk, each with an index; valid until a unit is created, dies or is detected."""

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
        """For each unit, the indices of the enemies at which it can fire, in ascending order."""
        self.weapons = [unit.type.weapon for unit in units]
        self.healers = [i for i, unit in enumerate(units) if unit.type.heals is not None]
        """The indices of the healers."""
        self.scan = [_scan(unit, world.clients) for unit in units]
        """The gap at which each unit notices an enemy, in cells; 0 for a unit without a weapon."""
        self.closest = [_closest(unit) for unit in units]
        """The least gap to an enemy at which each unit can fire, in cells."""
        self._radius = [unit.type.radius for unit in units]
        self._ground = [Ground.YIELDS] * len(units)
        self._x: list[float] = []
        self._y: list[float] = []

    def measure(self) -> None:
        """Record the units' places in this loop."""
        self._x = [unit.x for unit in self.units]
        self._y = [unit.y for unit in self.units]

    def gap(self, i: int, j: int) -> float:
        """Distance between the edges of two units, in cells; negative if they overlap."""
        dx, dy = self._x[j] - self._x[i], self._y[j] - self._y[i]
        return sqrt(dx * dx + dy * dy) - (self._radius[i] + self._radius[j])

    def nearest_enemy(self, i: int) -> tuple[int, float]:
        """The index of a unit's nearest enemy that is not too close to fire at, and the gap to it.

        If two enemies are equally near, the older enemy is taken. Without an enemy, the index is -1
        and the gap is infinite.
        """
        xs, ys, radius = self._x, self._y, self._radius
        x, y, own_radius, closest = xs[i], ys[i], radius[i], self.closest[i]
        nearest, least = -1, math.inf
        for j in self._targets[i]:
            dx, dy = xs[j] - x, ys[j] - y
            gap = sqrt(dx * dx + dy * dy) - (own_radius + radius[j])
            if closest <= gap < least:
                nearest, least = j, gap
        return nearest, least

    def take_note(self, ways: list[Way | None]) -> None:
        """Record for this loop how each unit reacts when other units want to pass."""
        for i, unit in enumerate(self.units):
            if ways[i] is not None:
                self._ground[i] = Ground.IS_HELD_UP if unit.held_up else Ground.YIELDS
            else:
                self._ground[i] = Ground.FIGHTS if unit.engaged else Ground.YIELDS

    def steer(self, ways: list[Way | None]) -> None:
        """Lead the ways of units on the ground around units that fight or are held up.

        A unit turns as little as necessary, and then keeps turning to the same side. If all
        directions are closed, it walks straight.
        """
        for i, way in enumerate(ways):
            unit = self.units[i]
            if way is not None and way[2] > 0.0 and not unit.type.aloft:
                ways[i] = self._around(i, unit, way)

    def _around(self, i: int, unit: Unit, way: Way) -> Way:
        x, y, distance = way
        x, y = x / distance, y / distance
        ahead = min(AHEAD, distance)
        near = self._near(i, self.index.get(unit.chases or unit.order.target_tag, -1), ahead)
        turn = unit.turn
        if not near or not _is_closed(near, x, y, ahead):
            unit.turn = 0
            return way
        count = len(TURNS)
        for attempt in range(2 * count):
            if turn:
                side, k = turn if attempt < count else -turn, attempt % count
            else:
                side, k = -1 if attempt % 2 else 1, attempt // 2
            cosine, sine = TURNS[k][0], TURNS[k][1] * side
            to_x, to_y = x * cosine - y * sine, x * sine + y * cosine
            if not _is_closed(near, to_x, to_y, ahead):
                unit.turn = side
                return to_x * distance, to_y * distance, distance
        return way

    def _near(self, i: int, target: int, ahead: float) -> list[tuple[float, float, float]]:
        """For each unit that may be in unit i's way: its offset, and the distance of touching."""
        found = []
        for j, ground in enumerate(self._ground):
            if not ground or j in (i, target) or self.units[j].type.aloft:
                continue
            dx, dy = self._x[j] - self._x[i], self._y[j] - self._y[i]
            touch = self._touch(i, j)
            reach = touch + ahead
            if dx * dx + dy * dy < reach * reach:
                found.append((dx, dy, touch * GRAZE))
        return found

    def _touch(self, i: int, j: int) -> float:
        """The distance at which two units touch."""
        kind, other = self.units[i].type, self.units[j].type
        return kind.room + other.room if kind.aloft == other.aloft else NO_TOUCH

    def keep_apart(
        self, vx: list[float], vy: list[float]
    ) -> tuple[list[float], list[float]] | None:
        """New velocities that cause no overlap of units; None if the given velocities cause none.

        If two units overlap, each moves by half of the overlap; if one fights, only the other one
        moves. Two units at the same point separate along the x axis, the older to the left.
        """
        count, units = len(self.units), self.units
        xs = [self._x[i] + vx[i] for i in range(count)]
        ys = [self._y[i] + vy[i] for i in range(count)]
        overlap = False
        for _ in range(ROUNDS):
            push_x, push_y = [0.0] * count, [0.0] * count
            for i in range(count):
                for j in range(i + 1, count):
                    touch = self._touch(i, j)
                    # Most pairs are too far apart along one axis, so that they need no root.
                    dx = xs[j] - xs[i]
                    if dx >= touch or -dx >= touch:
                        continue
                    dy = ys[j] - ys[i]
                    if dy >= touch or -dy >= touch:
                        continue
                    distance = sqrt(dx * dx + dy * dy)
                    gap = touch - distance
                    yields, other_yields = self._yields(i, j), self._yields(j, i)
                    if gap <= TINY or not (yields or other_yields):
                        continue
                    share = 0.5 if yields and other_yields else float(yields)
                    overlap = True
                    if distance == 0.0:
                        dx, distance = 1.0, 1.0
                    dx, dy = dx / distance * gap, dy / distance * gap
                    push_x[i] -= dx * share
                    push_y[i] -= dy * share
                    push_x[j] += dx * (1.0 - share)
                    push_y[j] += dy * (1.0 - share)
            if not overlap:
                return None
            for i in range(count):
                xs[i] += push_x[i]
                ys[i] += push_y[i]
        apart_x, apart_y = [0.0] * count, [0.0] * count
        for i in range(count):
            dx, dy = xs[i] - self._x[i], ys[i] - self._y[i]
            length, step = sqrt(dx * dx + dy * dy), units[i].type.step
            if length > step:
                dx, dy = dx / length * step, dy / length * step
            apart_x[i], apart_y[i] = dx, dy
        return apart_x, apart_y

    def _yields(self, i: int, j: int) -> bool:
        """True if a unit gives way to another one; a unit that cannot walk never does."""
        fights = Ground.FIGHTS
        stays = self._ground[i] == fights and self._ground[j] < fights
        return self.units[i].type.step > 0.0 and not stays

    def loops_until_contact(self, moving: dict[Unit, Point]) -> float:
        """The number of loops until a unit first touches another one or notices an enemy.

        `moving` has the velocity of each unit that moves.
        """
        xs, ys, radius, scan = self._x, self._y, self._radius, self.scan
        velocities = [moving.get(unit, STILL) for unit in self.units]
        soonest = math.inf
        for i, (vx, vy) in enumerate(velocities):
            for j in range(i + 1, len(velocities)):
                closing_x, closing_y = vx - velocities[j][0], vy - velocities[j][1]
                speed = sqrt(closing_x * closing_x + closing_y * closing_y)
                if speed == 0.0:
                    continue
                contact = self._touch(i, j)
                if j in self._targets[i]:
                    contact = max(contact, scan[i] + (radius[i] + radius[j]))
                if i in self._targets[j]:
                    contact = max(contact, scan[j] + (radius[i] + radius[j]))
                dx, dy = xs[j] - xs[i], ys[j] - ys[i]
                soonest = min(soonest, (sqrt(dx * dx + dy * dy) - contact) / speed)
        return soonest


def _is_closed(near: list[tuple[float, float, float]], x: float, y: float, ahead: float) -> bool:
    """True if one of the near units is within the distance `ahead` in this direction."""
    for dx, dy, touch in near:
        along = dx * x + dy * y
        if along <= 0.0:
            continue
        across = dx * y - dy * x
        if across >= touch or -across >= touch:
            continue
        if along - sqrt(touch * touch - across * across) < ahead:
            return True
    return False


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
    # The scan range of a computer's units is their range of sight.
    return scan if unit.owner in clients else max(unit.type.sight, scan)


def _closest(unit: Unit) -> float:
    weapon = unit.type.weapon
    return weapon.min_range if weapon is not None and weapon.min_range else -math.inf


Compiled: type[Pairs] | None = None
"""`Pairs` with the compiled loops; None if they are not available."""

if os.environ.get("SC2POOL_PURE", "0") == "0":
    with suppress(ImportError):
        from sc2standin.simulation.fights._pairs import Geometry

        class _Compiled(Geometry, Pairs):
            def __init__(self, world: World) -> None:
                Pairs.__init__(self, world)
                told = (self.units, self.index, self._targets, self.scan, self.closest)
                self.lay_out(*told, NO_TOUCH, TINY, AHEAD, GRAZE, ROUNDS, TURNS)

        Compiled = _Compiled


def pairs_of(world: World) -> Pairs:
    """The pairs of the world's units."""
    return Pairs(world) if Compiled is None else Compiled(world)
