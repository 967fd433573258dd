"""Add-ons: a tech lab or a reactor beside a barracks, factory or starport.

Rules it keeps: an add-on belongs to the structure beside it, whichever landed or was built there
last, and is of that structure's kind; beside none it is of the bare kind; its structure puts it up,
and it is lost if the structure is lost before it is done. If its kind changes, it gives up its
research, and the money comes back.
"""

from __future__ import annotations

from collections.abc import Callable

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import Research
from sc2standin.data.unit_types import ADD_ON_OFFSET, ADD_ONS, BARE_ADD_ONS, UnitType
from sc2standin.simulation.economy.workers.building import FIRST_LIFE
from sc2standin.simulation.economy.workers.walking import Walking
from sc2standin.simulation.units import STOPPED, Factory, Point, Site, Unit
from sc2standin.simulation.world import World

_WITH_ADD_ONS = {kind for kind, _bare in ADD_ONS}


class AddOns:
    """A player's add-ons in one episode.

    Args:
        loops_for: how long something takes to make.
        give_up: cancels all that a structure makes.
    """

    def __init__(
        self,
        world: World,
        walking: Walking,
        owner: int,
        loops_for: Callable[[UnitType | Research], int],
        give_up: Callable[[Unit], None],
    ) -> None:
        self._world, self._walking, self._owner = world, walking, owner
        self._loops_for, self._give_up = loops_for, give_up
        self._seen: list[Unit] = []
        """The structures at the last call; the world makes a new list when one changes."""
        self._sites: list[tuple[Unit, Unit]] = []
        """The add-ons that are being put up, each with its structure."""

    def begin(self, structure: Unit, kind: UnitType) -> None:
        """Put up an add-on beside a structure; the place is free."""
        world = self._world
        site = world.spawn(kind, structure.owner, [add_on_place(structure.x, structure.y)])[0]
        loops = self._loops_for(kind)
        site.job = Site(loops, loops, is_add_on=True)
        site.life = kind.life * FIRST_LIFE
        world.count_units()
        self._walking.step_aside(site)
        self._sites.append((structure, site))

    def owner_of(self, site: Unit) -> Unit | None:
        """The structure that puts up an add-on; None for all other sites."""
        return next((structure for structure, one in self._sites if one is site), None)

    def cancel(self, structure: Unit) -> None:
        """Take down the add-on that a structure puts up."""
        self._world.doomed += [site.tag for one, site in self._sites if one is structure]

    def finish(self, structure: Unit) -> None:
        """The add-on that a structure puts up is done."""
        for one, site in self._sites:
            if one is structure:
                site.job = Factory()
        self._sites = [pair for pair in self._sites if pair[0] is not structure]
        self._world.count_units()

    def advance(self) -> None:
        """Put up add-ons for one loop; find out which belongs to which structure."""
        if self._seen is not self._world.structures[self._owner]:
            self._settle()
            self._seen = self._world.structures[self._owner]
        for _structure, site in self._sites:
            job, kind = site.job, site.type
            if isinstance(job, Site):
                job.left = max(job.left - 1, 0)
                more = kind.life * (1.0 - FIRST_LIFE) / job.loops
                site.life = min(site.life + more, kind.life)

    def _settle(self) -> None:
        """Give each structure the add-on beside it, and each add-on the type that follows."""
        world = self._world
        self._give_up_lost()
        own = world.structures[self._owner]
        add_ons = {(one.x, one.y): one for one in own if one.type in BARE_ADD_ONS}
        owners = [one for one in own if one.type in _WITH_ADD_ONS]
        for structure in own:
            if isinstance(structure.job, Factory):
                structure.job.add_on = 0
        for structure in owners:
            add_on = add_ons.get(add_on_place(structure.x, structure.y))
            if add_on is not None and isinstance(structure.job, Factory):
                del add_ons[add_on.x, add_on.y]
                structure.job.add_on = add_on.tag
                self._become(add_on, ADD_ONS[structure.type, BARE_ADD_ONS[add_on.type]])
        for add_on in add_ons.values():
            self._become(add_on, BARE_ADD_ONS[add_on.type])

    def _become(self, add_on: Unit, kind: UnitType) -> None:
        if add_on.type is not kind:
            self._give_up(add_on)
            self._world.become(add_on, kind)

    def _give_up_lost(self) -> None:
        """End the work on add-ons that were destroyed, or whose structure was."""
        by_tag = self._world.by_tag
        for structure, site in tuple(self._sites):
            if structure.tag in by_tag and site.tag in by_tag:
                continue
            self._sites.remove((structure, site))
            if site.tag in by_tag:
                self._world.doomed.append(site.tag)
            elif structure.order.kind == OrderKind.ADD_ON and isinstance(structure.job, Factory):
                structure.order = STOPPED
                structure.job.done_at.clear()


def add_on_place(x: float, y: float) -> Point:
    """The middle of the add-on of a structure at this point."""
    return x + ADD_ON_OFFSET[0], y + ADD_ON_OFFSET[1]
