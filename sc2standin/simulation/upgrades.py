"""The upgrades of all players in one episode, and what their units are with them."""

from __future__ import annotations

from sc2standin.data.unit_types import UnitType
from sc2standin.data.upgrades import Levels, levels, variant


class Upgrades:
    """A player's finished research.

    Attributes:
        count: the number of all upgrades; nothing of this file matters while it is 0.
    """

    def __init__(self) -> None:
        self.count = 0
        self._done: dict[int, list[int]] = {}
        self._levels: dict[tuple[int, UnitType], Levels] = {}

    def of(self, owner: int) -> list[int]:
        """The ids of a player's upgrades, in the order in which they were done."""
        return self._done.get(owner, [])

    def add(self, owner: int, upgrade_id: int) -> None:
        """A player has an upgrade from now on."""
        self._done.setdefault(owner, []).append(upgrade_id)
        self.count += 1
        self._levels.clear()

    def kind_for(self, owner: int, kind: UnitType, *, stimmed: bool = False) -> UnitType:
        """The type of a player's units with its upgrades, with a stimpack or without one."""
        if not self.count and not stimmed:
            return kind.variant_of or kind
        return variant(kind, frozenset(self.of(owner)), stimmed=stimmed)

    def levels_of(self, owner: int, kind: UnitType) -> Levels:
        """The levels of the weapons and armor of a player's units of a type."""
        found = self._levels.get((owner, kind))
        if found is None:
            found = self._levels[owner, kind] = levels(kind, frozenset(self.of(owner)))
        return found
