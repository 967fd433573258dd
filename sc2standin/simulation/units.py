"""A unit, its orders, and its job: what it does in an economy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import Research
from sc2standin.data.spells import Spell
from sc2standin.data.unit_types import UnitType

ME, ENEMY, NEUTRAL = 1, 2, 16
"""Owners: player 1, player 2, and the owner of scenery. Player 1 is a client, unless two computers
play; player 2 is its opponent, a computer or another client."""
PLAYERS = (ME, ENEMY)

Point = tuple[float, float]

NEVER = 1 << 60
"""A loop that never comes."""
NO_HIT = -1 << 60
"""The loop of a hit that never was."""


class Order(NamedTuple):
    """One order of a unit: to a point, or to a unit if `target_tag` is not 0."""

    kind: OrderKind
    x: float
    y: float
    target_tag: int
    makes: UnitType | Research | None = None
    """The unit type or research that is made."""
    spell: Spell | None = None
    """The spell that is cast."""


STOPPED = Order(OrderKind.IDLE, 0.0, 0.0, 0)


@dataclass(slots=True)
class Errand:
    """A worker that walks or waits until a loop, and then does something."""

    until: int
    then: Callable[[Unit], None]
    vx: float = 0.0
    vy: float = 0.0
    constructing: bool = False
    """True for a worker that puts up a structure; its next orders wait."""
    bound: bool = False
    """True for a unit that changes its mode; all its next orders wait, even to stop."""


LAST_LOOP = 1 << 60
"""When an errand ends that something else ends."""


@dataclass(slots=True)
class Deposit:
    """The remaining content of a mineral field, a geyser or a refinery."""

    left: int
    free_at: int = 0
    """Loop at which the next SCV may begin to gather; one at a time does."""
    mules_free_at: int = 0
    """The same for MULEs, which are not in the way of SCVs."""


@dataclass(slots=True)
class Site:
    """A structure that is being put up."""

    left: int
    """Loops of work that are left."""
    loops: float
    """Loops of work in all."""
    builder: int = 0
    """Tag of the worker that puts it up, 0 if none does."""
    is_add_on: bool = False
    """True if the structure beside it puts it up."""


@dataclass(slots=True)
class Factory:
    """A structure that makes things by itself: the unit's orders are its queue."""

    done_at: list[int] = field(default_factory=list)
    """Loops at which its first orders are done: as many as have begun."""
    add_on: int = 0
    """Tag of the add-on beside it, 0 for none."""
    rally: list[Order] = field(default_factory=list)
    """The order of new units, if there is one."""


class Term(NamedTuple):
    """A limited time: the loop at which it is over, and how many loops it takes in all."""

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
    """Time at which the weapon may fire again, in loops."""
    pace: float = 0.0
    """How far it has moved in the last loop, of a unit that speeds up, in cells."""
    hits_at: float = NEVER
    """Time at which the attack that is under way does its damage, in loops."""
    rests_until: float = 0.0
    """Time until which it does not go after another target by itself, in loops."""
    hit_at: int = NO_HIT
    """Loop of the last hit on its shields or life."""
    engaged: int = 0
    """Tag of the unit that the weapon is aimed at, 0 for none."""
    chases: int = 0
    """Tag of the unit that it walks up to, to fire at it, 0 for none."""
    held_up: bool = False
    """True if others kept it from walking in the last loop."""
    turn: int = 0
    """The side on which it walks around others: 1 for the left, -1 for the right, 0 for none."""
    noticed: int = 0
    """Tag of the unit that it last chose to fire at by itself, 0 for none."""
    order: Order = STOPPED
    queue: list[Order] = field(default_factory=list)
    """The orders after the current one."""
    patrol_from: Point = (0.0, 0.0)
    job: Job | None = None
    """Its job in an economy."""
    cargo: tuple[int, int] = (0, 0)
    """Minerals and gas that a worker carries."""
    workplace: int = 0
    """Tag of the deposit that a worker gathers from, 0 for none."""
    unseen: bool = False
    """True while it is cloaked and no enemy detects it."""
    cools_until: dict[int, int] = field(default_factory=dict)
    """The abilities of its spells with a cooldown, and the loop from which it may cast each."""
    buffs: dict[int, int] = field(default_factory=dict)
    """The ids of its buffs, and the loop at which each one ends."""
    term: Term | None = None
    """The time for which it is there; None for a unit that stays."""

    def attacks(self, target: Unit) -> bool:
        """True if an attack on this unit is under way."""
        return self.hits_at != NEVER and self.engaged == target.tag

    def aim(self, target: Unit) -> None:
        """Aim the weapon at a unit. An attack on another one ends."""
        self.engaged, self.hits_at, self.chases = target.tag, NEVER, 0

    def go_after(self, target: Unit) -> None:
        """Walk up to a unit, with the weapon down."""
        self.lower_weapon()
        self.chases = target.tag

    def lower_weapon(self) -> None:
        """Give up the target. An attack that is under way ends, without a cooldown."""
        self.engaged, self.hits_at, self.chases = 0, NEVER, 0

    def fired(self, ready_at: float, rests_until: float) -> None:
        """The attack has come to its damage point."""
        self.hits_at, self.ready_at, self.rests_until = NEVER, ready_at, rests_until


Way = tuple[float, float, float]
"""The way of a unit to a point: along x, along y, and its length."""


def way_to(unit: Unit, x: float, y: float) -> Way:
    """The straight way of a unit to a point."""
    way_x, way_y = x - unit.x, y - unit.y
    return way_x, way_y, math.sqrt(way_x * way_x + way_y * way_y)
