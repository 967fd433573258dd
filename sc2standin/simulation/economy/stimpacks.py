"""Stimpacks: for some life, a marine or marauder walks and fires faster for a while.

Rule it keeps: a second stimpack begins the time again.
"""

from __future__ import annotations

from sc2standin.data.upgrades import STIMPACK_LOOPS, STIMPACKS
from sc2standin.simulation.units import Unit
from sc2standin.simulation.world import World


class Stimpacks:
    """The stimpacks that a player's units have taken, in one episode."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._until: dict[Unit, int] = {}

    def use(self, unit: Unit) -> bool:
        """Let a unit take a stimpack; False if it has too little life."""
        if not can_afford(unit):
            return False
        unit.life -= STIMPACKS[unit.type.name].costs_life
        self._until[unit] = self._world.loop + STIMPACK_LOOPS
        self._world.become(unit, unit.type, stimmed=True)
        return True

    def advance(self) -> None:
        """End the stimpacks whose time is over."""
        loop = self._world.loop
        for unit in [one for one, until in self._until.items() if until <= loop]:
            del self._until[unit]
            if unit.tag in self._world.by_tag:
                self._world.become(unit, unit.type)


def can_afford(unit: Unit) -> bool:
    """True if a unit survives a stimpack."""
    return unit.life > STIMPACKS[unit.type.name].costs_life
