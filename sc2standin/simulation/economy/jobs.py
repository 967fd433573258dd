"""What units do in an economy: the value of `Unit.job`, None for all other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sc2standin.simulation.world import Order, Unit


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
    """What is left in a mineral field, a geyser or a refinery."""

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


Job = Errand | Deposit | Site | Factory
