"""A player's console: the camera, the selection, the control groups.

A `Console` never changes; each action makes a new one. A new console takes effect with the next
loop, as every action does. A later action of the same loop starts from the new console, not from
the old one. A unit that has died is no longer in the selection or in a group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sc2standin.simulation.units import Point, Unit
from sc2standin.simulation.world import World

GROUPS = 10
"""The number of control groups."""


@dataclass(frozen=True)
class Console:
    """One state of a player's console; units in it may be dead by now."""

    player: int
    camera: Point
    """The point in the middle of the screen."""
    selected: tuple[Unit, ...] = ()
    groups: tuple[tuple[Unit, ...], ...] = ((),) * GROUPS


class Controls:
    """The console of one player.

    Attributes:
        now: the console in this loop.
        asked: the console after the last action; it becomes `now` with the next loop.
    """

    def __init__(self, world: World, player: int, camera: Point) -> None:
        self._world = world
        self.now = self.asked = Console(player, camera)

    def take_over(self, console: Console) -> None:
        """Make this console the current one."""
        self.now = console

    def select(self, units: Iterable[Unit]) -> None:
        """Select these units immediately; only a map's rules call this method."""
        selected = tuple(units)
        self.now = replace(self.now, selected=selected)
        self.asked = replace(self.asked, selected=selected)

    def alive(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """Those of the given units that are still alive."""
        by_tag = self._world.by_tag
        return tuple(unit for unit in units if by_tag.get(unit.tag) is unit)
