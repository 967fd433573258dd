"""What units do in an economy: the value of `Unit.job`, None for all other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sc2pool.standin.simulation.world import Order, Unit


@dataclass(slots=True)
class Errand:
    """A worker that walks or waits until a loop, and then does something."""

    until: int
    then: Callable[[Unit], None]
    vx: float = 0.0
    vy: float = 0.0
    constructing: bool = False
    """True for a worker that puts up a structure; its next orders wait."""


LAST_LOOP = 1 << 60
"""When an errand ends that something else ends."""


@dataclass(slots=True)
class Deposit:
    """What is left in a mineral field, a geyser or a refinery."""

    left: int
    free_at: int = 0
    """Loop at which the next worker may begin to gather; one at a time does."""


@dataclass(slots=True)
class Site:
    """A structure that is being put up."""

    left: int
    """Loops of work that are left."""
    builder: int = 0
    """Tag of the worker that puts it up, 0 if none does."""


@dataclass(slots=True)
class Factory:
    """A structure that trains units: the unit's orders are its queue."""

    done_at: int = 0
    """Loop at which the unit in production is done; 0 if none is begun."""
    rally: list[Order] = field(default_factory=list)
    """The order of new units, if there is one."""


Job = Errand | Deposit | Site | Factory
