"""A unit, its orders, and its job in an economy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import Research
from sc2standin.data.spells import Spell
from sc2standin.data.unit_types.kinds import UnitType

ME, ENEMY, NEUTRAL = 1, 2, 16
"""Owners: player 1, player 2, and the owner of scenery.

Player 1 is a client, unless two computers play. Player 2 is the opponent, a computer or a client.
"""
PLAYERS = (ME, ENEMY)
OPPONENT = {ME: ENEMY, ENEMY: ME}

Point = tuple[float, float]

NEVER = 1 << 60
"""A loop that never comes."""
NO_HIT = -1 << 60
"""The value of `Unit.hit_at` for a unit that was never hit."""


class Order(NamedTuple):
    """One order to a unit; its target is a point, or a unit if `target_tag` is not 0."""

    kind: OrderKind
    x: float
    y: float
    target_tag: int
    makes: UnitType | Research | None = None
    """The unit type or research that the order makes."""
    spell: Spell | None = None
    """The spell that the order casts."""


STOPPED = Order(OrderKind.IDLE, 0.0, 0.0, 0)


@dataclass(slots=True)
class Errand:
    """The job of a worker that walks or waits until the loop `until`, and then calls `then`."""

    until: int
    then: Callable[[Unit], None]
    vx: float = 0.0
    vy: float = 0.0
    constructing: bool = False
    """True for a worker that builds a structure; its new orders wait, except a stop."""
    bound: bool = False
    """True for a unit that changes its mode; its new orders wait, and a stop only deletes them."""


LAST_LOOP = 1 << 60
"""The value of `Errand.until` of an errand that does not end by itself."""


@dataclass(slots=True)
class Deposit:
    """The remaining content of a mineral field, a geyser or a refinery."""

    left: int
    free_at: int = 0
    """Loop at which the next SCV may begin to gather; only one SCV at a time gathers."""
    mules_free_at: int = 0
    """Loop at which the next MULE may begin to gather; MULEs do not block SCVs."""


@dataclass(slots=True)
class Site:
    """The job of a structure under construction."""

    left: int
    """The number of loops of work that are left."""
    loops: float
    """The number of loops that the whole work takes."""
    builder: int = 0
    """Tag of the worker that builds the structure, 0 without a worker."""
    is_add_on: bool = False
    """True for an add-on, which the structure beside it builds."""


@dataclass(slots=True)
class Factory:
    """The job of a structure that makes things by itself; the structure's orders are the queue."""

    done_at: list[int] = field(default_factory=list)
    """The loops at which the orders in progress (the first ones of the queue) are done."""
    add_on: int = 0
    """Tag of the add-on beside the structure, 0 for none."""
    rally: list[Order] = field(default_factory=list)
    """A list with the order that new units get. The list is empty without such an order."""


class Term(NamedTuple):
    """A limited time: the loop at which it is over, and its length in loops."""

    until: int
    loops: int


Job = Errand | Deposit | Site | Factory


@dataclass(slots=True, eq=False)
class Unit:
    """One living unit."""

    tag: int
    type: UnitType
    owner: int
    x: float
    y: float
    facing: float
    life: float
    shields: float
    energy: float = 0.0
    ready_at: float = 0.0
    """The time at which the weapon can fire again, in loops."""
    pace: float = 0.0
    """For a unit that accelerates, the distance that it moved in the last loop, in cells."""
    hits_at: float = NEVER
    """Time at which the attack under way does its damage, in loops."""
    rests_until: float = 0.0
    """Until this time, in loops, the unit does not pursue another target by itself."""
    hit_at: int = NO_HIT
    """Loop of the last hit on the unit."""
    engaged: int = 0
    """Tag of the unit at which the weapon is aimed, 0 for none."""
    chases: int = 0
    """Tag of the unit to which this one walks in order to fire; 0 for none."""
    held_up: bool = False
    """True if other units kept this one from walking in the last loop."""
    turn: int = 0
    """The side to which the unit turns to pass units: 1 for left, -1 for right, 0 for none."""
    noticed: int = 0
    """Tag of the last target that the unit chose by itself, 0 for none."""
    order: Order = STOPPED
    queue: list[Order] = field(default_factory=list)
    """The orders after the current one."""
    patrol_from: Point = (0.0, 0.0)
    job: Job | None = None
    """The unit's job in an economy."""
    cargo: tuple[int, int] = (0, 0)
    """Minerals and gas that a worker carries."""
    workplace: int = 0
    """Tag of the deposit that a worker gathers from, 0 for none."""
    unseen: bool = False
    """True while the unit is cloaked and no enemy detects it."""
    cools_until: dict[int, int] = field(default_factory=dict)
    """For each ability of a spell with a cooldown, the loop from which it can be cast again."""
    buffs: dict[int, int] = field(default_factory=dict)
    """The ids of the unit's buffs, each with the loop at which the buff ends."""
    term: Term | None = None
    """The limited lifetime of the unit; None if its lifetime is not limited."""

    def attacks(self, target: Unit) -> bool:
        """True if an attack of this unit on the target is under way."""
        return self.hits_at != NEVER and self.engaged == target.tag

    def aim(self, target: Unit) -> None:
        """Aim the weapon at a unit, and end any attack under way."""
        self.engaged, self.hits_at, self.chases = target.tag, NEVER, 0

    def go_after(self, target: Unit) -> None:
        """Begin to walk to a target; this ends any attack under way."""
        self.lower_weapon()
        self.chases = target.tag

    def lower_weapon(self) -> None:
        """Give up the target. An attack under way ends without a cooldown."""
        self.engaged, self.hits_at, self.chases = 0, NEVER, 0

    def fired(self, ready_at: float, rests_until: float) -> None:
        """Record that the attack has reached its damage point."""
        self.hits_at, self.ready_at, self.rests_until = NEVER, ready_at, rests_until


Way = tuple[float, float, float]
"""A unit's straight way to a point: the offsets along x and y, and the length."""


def way_to(unit: Unit, x: float, y: float) -> Way:
    """The straight way of a unit to a point."""
    way_x, way_y = x - unit.x, y - unit.y
    return way_x, way_y, math.sqrt(way_x * way_x + way_y * way_y)
