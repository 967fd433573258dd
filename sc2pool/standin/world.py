"""All units of one episode, as arrays: one row per unit, one array per property.

Rules it keeps:
- rows stay in the order of creation, so tags are sorted and `rows_of` can search them;
- the arrays have exactly one row per living unit; creating units and deaths, which are rare, make
  new arrays, so that the work of each loop uses whole columns;
- a change that affects the plans of movement calls `orders_changed`; one that affects the rules
  too calls `disturb`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sc2pool.standin import unit_types
from sc2pool.standin.abilities import OrderKind

ME, ENEMY, NEUTRAL = 1, 2, 16
"""Owners: the one client, its opponent, and the owner of scenery."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_FIRST_TAG = (1 << 32) + (1 << 18) + 1
_TAG_STEP = 1 << 18

NEVER = 1 << 60
"""A loop that never comes."""


class Order(NamedTuple):
    """One order of a unit: to a point, or to a unit if `target_tag` is not 0."""

    kind: OrderKind
    x: float
    y: float
    target_tag: int


@dataclass(frozen=True)
class Army:
    """Totals over the client's units."""

    count: int = 0
    minerals: float = 0.0
    vespene: float = 0.0
    food: float = 0.0
    mobile: bool = False
    armed: bool = False


@dataclass
class Ledger:
    """The sums that the score details report, for the client's side."""

    killed_value: float = 0.0
    killed_minerals: float = 0.0
    killed_vespene: float = 0.0
    lost_minerals: float = 0.0
    lost_vespene: float = 0.0
    dealt_life: float = 0.0
    dealt_shields: float = 0.0
    taken_life: float = 0.0
    taken_shields: float = 0.0


class World:
    """The arrays, the loop, and the events since the last observation."""

    def __init__(self) -> None:
        self.loop = 0
        self.score = 0
        self.ledger = Ledger()
        self.dead_tags: list[int] = []
        """Tags of the units that died since the last observation."""

        self.tag: Ints = np.empty(0, np.int64)
        self.type_row: Ints = np.empty(0, np.int64)
        self.owner: Ints = np.empty(0, np.int64)
        self.pos: Floats = np.empty((0, 2))
        self.velocity: Floats = np.empty((0, 2))
        self.facing: Floats = np.empty(0)
        self.life: Floats = np.empty(0)
        self.shields: Floats = np.empty(0)
        self.energy: Floats = np.empty(0)
        self.ready_at: Floats = np.empty(0)
        """Time at which the weapon may fire again, in loops."""
        self.engaged: Ints = np.empty(0, np.int64)
        """Tag of the unit that the weapon is aimed at, 0 for none."""
        self.order: Ints = np.empty(0, np.int64)
        self.order_point: Floats = np.empty((0, 2))
        self.order_tag: Ints = np.empty(0, np.int64)
        self.patrol_from: Floats = np.empty((0, 2))

        self.doomed: list[int] = []
        """Tags of the units that die at the end of this loop."""
        self.queued: dict[int, list[Order]] = {}
        """Queued orders by tag, for the units that have any."""
        self.orders_version = 0
        """Changes with every order, and when units are created or die."""
        self.population_version = 0
        """Changes when units are created or die."""
        self.plan_until = 0
        """Velocities are valid up to this loop; then movement must plan again."""
        self.rules_at = 0
        """No rule has an effect before this loop."""
        self._next_tag = _FIRST_TAG
        self._army = Army()
        self._army_version = -1

    @property
    def count(self) -> int:
        """Number of living units."""
        return len(self.tag)

    @property
    def radius(self) -> Floats:
        """Radius of each unit."""
        return unit_types.RADIUS[self.type_row]

    def orders_changed(self) -> None:
        """An order changed: movement must plan again."""
        self.orders_version += 1
        self.plan_until = self.loop

    def disturb(self) -> None:
        """A unit was created, removed or moved: movement must plan again, the rules must apply."""
        self.orders_changed()
        self.rules_at = self.loop

    def army(self) -> Army:
        """Totals over the client's units."""
        if self._army_version != self.population_version:
            rows = self.type_row[self.owner == ME].tolist()
            types = [unit_types.UNIT_TYPES[row] for row in rows]
            self._army = Army(
                count=len(types),
                minerals=float(sum(unit.minerals for unit in types)),
                vespene=float(sum(unit.vespene for unit in types)),
                food=float(sum(unit.food for unit in types)),
                mobile=any(unit.mobile for unit in types),
                armed=any(unit.mobile and unit.weapon is not None for unit in types),
            )
            self._army_version = self.population_version
        return self._army

    def spawn(self, type_row: int, owner: int, points: Floats) -> None:
        """Create one unit at each of the points."""
        n = len(points)
        unit = unit_types.UNIT_TYPES[type_row]
        tags = self._next_tag + _TAG_STEP * np.arange(n)
        self._next_tag += _TAG_STEP * n
        # The client's units face right, all others down.
        births = {
            "tag": tags,
            "type_row": np.full(n, type_row),
            "owner": np.full(n, owner),
            "pos": points,
            "facing": np.full(n, 0.0 if owner == ME else 1.5 * np.pi),
            "life": np.full(n, unit.life),
            "shields": np.full(n, unit.shields),
        }
        for name in _COLUMNS:
            old = getattr(self, name)
            new = births.get(name)
            if new is None:
                new = np.zeros((n, *old.shape[1:]), old.dtype)
            setattr(self, name, np.concatenate([old, new.astype(old.dtype)]))
        self._population_changed()

    def bury_dead(self, dead: Bools) -> None:
        """Remove units and record their deaths."""
        for tag, owner, row in zip(
            self.tag[dead].tolist(),
            self.owner[dead].tolist(),
            self.type_row[dead].tolist(),
            strict=True,
        ):
            self.queued.pop(tag, None)
            self.dead_tags.append(tag)
            self._account_death(owner, unit_types.UNIT_TYPES[row])
        keep = ~dead
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[keep])
        self._population_changed()

    def rows_of(self, tags: Ints) -> Ints:
        """The row of each tag, -1 if no such unit lives."""
        if not self.count:
            return np.full(len(tags), -1)
        found = self.tag.searchsorted(tags)
        found[found == self.count] = 0
        return np.where(self.tag[found] == tags, found, -1)

    def row_of(self, tag: int) -> int:
        """The row of one tag, -1 if no such unit lives."""
        row = int(self.tag.searchsorted(tag))
        return row if row < self.count and self.tag[row] == tag else -1

    def _account_death(self, owner: int, unit: unit_types.UnitType) -> None:
        if owner == ENEMY:
            self.ledger.killed_value += unit.minerals + unit.vespene
            self.ledger.killed_minerals += unit.minerals
            self.ledger.killed_vespene += unit.vespene
        elif owner == ME:
            self.ledger.lost_minerals += unit.minerals
            self.ledger.lost_vespene += unit.vespene

    def _population_changed(self) -> None:
        self.population_version += 1
        self.disturb()


_COLUMNS = (
    "tag",
    "type_row",
    "owner",
    "pos",
    "velocity",
    "facing",
    "life",
    "shields",
    "energy",
    "ready_at",
    "engaged",
    "order",
    "order_point",
    "order_tag",
    "patrol_from",
)
