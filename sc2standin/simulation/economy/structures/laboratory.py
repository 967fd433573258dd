"""Research: what a player's structures can research now.

Rules it keeps: an upgrade is researched once, by one structure; a level comes after the one before.
"""

from __future__ import annotations

from sc2standin.data.research import RESEARCH_OF, Research
from sc2standin.simulation.units import Site, Unit
from sc2standin.simulation.world import World


class Laboratory:
    """A player's research in one episode."""

    def __init__(self, world: World, owner: int) -> None:
        self._world, self._owner = world, owner

    def allows(self, research: Research, *, any_tech: bool) -> bool:
        """True if an upgrade can be begun now; with `any_tech` whatever stands."""
        done = self._world.upgrades.of(self._owner)
        if research.id in done or (research.after and research.after not in done):
            return False
        needs = research.needs
        return (
            any_tech
            or not needs
            or any(
                unit.type.name in needs and not isinstance(unit.job, Site)
                for unit in self._world.structures[self._owner]
            )
        ) and research not in self._begun()

    def has(self, upgrade_id: int) -> bool:
        """True if the player has an upgrade."""
        return upgrade_id in self._world.upgrades.of(self._owner)

    def next_level(self, structure: Unit, general_id: int) -> Research | None:
        """The research that a general ability stands for: the first level that is not begun.

        The last one if all are, None if it has no such levels.
        """
        levels = [
            one for one in RESEARCH_OF.get(structure.type.name, ()) if one.general_id == general_id
        ]
        taken = self._begun() if levels else set()
        done = self._world.upgrades.of(self._owner)
        left = [one for one in levels if one.id not in done and one not in taken]
        return next(iter(left or levels[-1:]), None)

    def _begun(self) -> set[Research]:
        """The research in progress or queued."""
        return {
            order.makes
            for unit in self._world.structures[self._owner]
            for order in (unit.order, *unit.queue)
            if isinstance(order.makes, Research)
        }
