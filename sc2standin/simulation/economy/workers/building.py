"""Building: a worker walks to the place, and stays until the structure is finished.

Rules of building:
* A structure is paid for when it is ordered, and refunded if the work is not begun. Because payment
  is immediate, python-sc2's own test of `expand_now` sends only one worker.
* A structure needs open ground without other structures or resources on the cells of its footprint.
  A town hall also keeps its distance to resources. A refinery stands on a geyser.
* The player's own units step aside if they can walk. Units on the ground that do not step aside
  block a place, and so does creep.
* Work stops when the worker dies or is stopped. Another worker may then continue the work.

Repairing: SCVs and MULEs give life back to structures and mechanical units, at a cost. One worker
repairs the whole life of a unit in the time in which the unit's type is made, for a quarter of the
type's cost. Two workers repair twice as fast. During the repair the cost is paid in whole units of
minerals and gas. A worker follows the unit that it repairs. The worker stops when the unit is
repaired or gone, or the player cannot pay. A structure under construction cannot be repaired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import NamedTuple

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import Research
from sc2standin.data.unit_types.files import ADD_ONS, BARRACKS, TOWN_HALLS
from sc2standin.data.unit_types.kinds import MECHANICAL, STRUCTURE, UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.economy.workers.mining import Walking
from sc2standin.simulation.terrain import Cells, Terrain
from sc2standin.simulation.units import (
    LAST_LOOP,
    STOPPED,
    Deposit,
    Errand,
    Factory,
    Order,
    Point,
    Site,
    Unit,
)
from sc2standin.simulation.world import World

FIRST_LIFE = 0.1
"""The share of its full life with which a new structure begins."""
FROM_RESOURCES_CELLS = 2.75
"""The least distance between the edges of a town hall and a resource, as in all recorded towns.

Three free cells between town hall and resource suffice, or two along each axis at a corner.
"""
REFUND = 0.75
"""The share of the cost that is refunded for an unfinished or salvaged structure."""
SALVAGE_LOOPS = 80
"""The loops from the order to salvage a structure to its removal: 5 s at 16 loops a second."""


class Known(NamedTuple):
    """What a player sees of the map when it chooses a place for a structure."""

    hidden: Container[Unit] = ()
    """The units that the player does not see; they do not block a place."""
    lit: Cells | None = None
    """The cells that the player sees (None: all); creep on other cells does not block a place."""


ALL_KNOWN = Known()


class Building:
    """A player's structures in one episode, from the order to the end of construction."""

    def __init__(
        self,
        world: World,
        terrain: Terrain,
        walking: Walking,
        pay: Callable[[UnitType], error_pb.ActionResult.ValueType],
        refund: Callable[[int, int], None],
        *,
        owner: int,
        loops_for: Callable[[UnitType | Research], int],
    ) -> None:
        self._owner = owner
        self._world, self._terrain, self._walking = world, terrain, walking
        self._pay, self._refund, self._loops_for = pay, refund, loops_for
        self._paid: list[tuple[Unit, Order]] = []
        """The orders that are paid for and not begun, each with its worker."""
        self._sites: list[Unit] = []
        self._salvaged: list[tuple[int, Unit]] = []
        """The salvaged structures, each with the loop of its removal, in ascending order."""

    def snap(self, kind: UnitType, x: float, y: float) -> Point | None:
        """The centre of the cells on which a structure would stand; None for points off the map."""
        if not self._terrain.on_map(x, y):
            return None
        odd = kind.footprint[0] % 1.0  # the offset is 0.5 for an odd number of cells, else 0
        return round(x - odd) + odd, round(y - odd) + odd

    def can_place(
        self, kind: UnitType, x: float, y: float, known: Known = ALL_KNOWN
    ) -> error_pb.ActionResult.ValueType:
        """Success, or the reason why a structure cannot stand here, as far as the player knows."""
        half_x, half_y = kind.footprint
        if not self._is_ground(x - half_x, y - half_y, x + half_x, y + half_y):
            return error_pb.CantBuildLocationInvalid
        creep = self._world.creep
        if creep is not None and kind.race != common.Zerg:
            cells = (
                slice(round(y - half_y), round(y + half_y)),
                slice(round(x - half_x), round(x + half_x)),
            )
            if (creep[cells] if known.lit is None else creep[cells] & known.lit[cells]).any():
                return error_pb.CantBuildTooCloseToCreepSource
        is_town_hall = kind in TOWN_HALLS
        for unit in self._world.units:
            other_x, other_y = unit.type.footprint
            if not other_x and self._is_in_the_way(unit):
                other_x = other_y = unit.type.radius
            if not other_x or unit in known.hidden or (kind.has_vespene and is_geyser(unit)):
                continue
            apart_x, apart_y = (
                abs(unit.x - x) - half_x - other_x,
                abs(unit.y - y) - half_y - other_y,
            )
            if apart_x < 0 and apart_y < 0:
                return error_pb.CantBuildLocationInvalid
            if (
                is_town_hall
                and (unit.type.has_minerals or unit.type.has_vespene)
                and math.hypot(max(apart_x, 0.0), max(apart_y, 0.0)) < FROM_RESOURCES_CELLS
            ):
                return error_pb.CantBuildTooCloseToResources
        return error_pb.Success

    def _is_in_the_way(self, unit: Unit) -> bool:
        """True if a unit without a footprint stands on the ground and does not step aside."""
        kind = unit.type
        if kind.flies or kind.invulnerable or STRUCTURE in kind.attributes:
            return False
        # The player's own units do not step aside if they are sieged or burrowed.
        return unit.owner != self._owner or not kind.step

    def _is_ground(self, x0: float, y0: float, x1: float, y1: float) -> bool:
        """True if structures can stand on all cells of a rectangle."""
        terrain = self._terrain
        if not (terrain.x0 <= x0 and x1 <= terrain.x1 and terrain.y0 <= y0 and y1 <= terrain.y1):
            return False
        cells = terrain.building_cells[round(y0) : round(y1), round(x0) : round(x1)]
        return bool(cells.all())

    def order(self, worker: Unit, order: Order, *, queued: bool) -> error_pb.ActionResult.ValueType:
        """Pay for a structure and let a worker build it, or continue the site that it targets."""
        if isinstance(order.makes, UnitType) and not order.target_tag:
            result = self._pay(order.makes)
            if result != error_pb.Success:
                return result
            self._paid.append((worker, order))
        accepted = orders.give(self._world, worker, order, queued=queued)
        return error_pb.Success if accepted else error_pb.OrderQueueIsFull

    def _give_back(self) -> None:
        """Refund the paid orders to build that their workers have given up."""
        kept = []
        for worker, order in self._paid:
            has_it = any(one is order for one in (worker.order, *worker.queue))
            if has_it and worker.tag in self._world.by_tag:
                kept.append((worker, order))
            elif order.makes is not None:
                self._refund(*order.makes.cost)
        self._paid = kept

    def set_out(self, worker: Unit) -> None:
        """Let a worker walk to the place of its order, or to the site that it is to continue."""
        order = worker.order
        kind = order.makes
        assert isinstance(kind, UnitType)
        site = self._world.by_tag.get(order.target_tag)
        if order.target_tag and site is None:  # the site that the worker was to continue is gone
            orders.finish(self._world, worker)
            return
        place = (order.x, order.y) if site is None else (site.x, site.y)
        touch = kind.radius + worker.type.radius
        self._walking.walk(worker, place, touch, self._start, site)

    def _start(self, worker: Unit) -> None:
        """On the worker's arrival, begin its structure, continue its site, or end its order."""
        world, order = self._world, worker.order
        kind = order.makes
        assert isinstance(kind, UnitType)
        if order.target_tag:
            site = world.by_tag.get(order.target_tag)
            if site is None or not can_be_resumed(site):
                orders.finish(world, worker)
                return
        else:
            if self.can_place(kind, order.x, order.y) != error_pb.Success:
                orders.finish(world, worker)
                return
            self._paid = [one for one in self._paid if one[1] is not order]
            site = world.spawn(kind, worker.owner, [(order.x, order.y)])[0]
            loops = self._loops_for(kind)
            site.job, site.life = Site(loops, loops), kind.life * FIRST_LIFE
            self._sites.append(site)
            world.count_units()  # count again: an unfinished structure provides no supply
            self._walking.step_aside(site)
        assert isinstance(site.job, Site)
        site.job.builder = worker.tag
        worker.job = Errand(LAST_LOOP, _stay, constructing=True)

    def resume(self, site: Unit) -> Order | error_pb.ActionResult.ValueType:
        """The order to continue a site, or the reason for a refusal."""
        if not can_be_resumed(site):
            return error_pb.CantTargetThatUnit
        return Order(OrderKind.BUILD, 0.0, 0.0, site.tag, site.type)

    def cancel(self, site: Unit) -> tuple[int, int]:
        """Remove a structure; returns the minerals and gas to refund."""
        if site.tag in self._world.doomed:  # the structure was cancelled earlier in this loop
            return 0, 0
        self._world.doomed.append(site.tag)
        kind = site.type
        return int(kind.minerals * REFUND), int(kind.vespene * REFUND)

    def halt(self, site: Unit) -> None:
        """Let the worker leave a site unfinished."""
        builder = self._world.by_tag.get(site.job.builder) if isinstance(site.job, Site) else None
        if builder is not None:
            orders.give(self._world, builder, STOPPED, queued=False)

    def salvage(self, structure: Unit) -> None:
        """Begin to salvage a structure, which is removed and refunded after `SALVAGE_LOOPS`."""
        self._salvaged.append((self._world.loop + SALVAGE_LOOPS, structure))

    def salvages(self, structure: Unit) -> bool:
        """True if the structure is being salvaged."""
        return any(one is structure for _loop, one in self._salvaged)

    def _take_down_salvaged(self) -> None:
        while self._salvaged and self._salvaged[0][0] <= self._world.loop:
            _loop, structure = self._salvaged.pop(0)
            if structure.tag in self._world.by_tag:
                self._refund(*self.cancel(structure))

    def grow(self) -> None:
        """Build for one loop at sites with a worker; release workers of finished or lost sites."""
        world = self._world
        self._take_down_salvaged()
        if self._paid:
            self._give_back()
        for site in tuple(self._sites):
            job, kind = site.job, site.type
            assert isinstance(job, Site)
            builder = world.by_tag.get(job.builder)
            works = builder is not None and constructs(builder)
            if site.tag not in world.by_tag:
                self._sites.remove(site)
                if builder is not None and works:
                    orders.finish(world, builder)
            elif builder is None or not works:
                job.builder = 0
            else:
                job.left -= 1
                more = kind.life * (1.0 - FIRST_LIFE) / job.loops
                site.life = min(site.life + more, kind.life)
                if job.left <= 0:
                    self._finish(builder, site)

    def _finish(self, worker: Unit, site: Unit) -> None:
        """Finish a structure: it begins to work, and its worker is free."""
        world = self._world
        self._sites.remove(site)
        if site.type.has_vespene:
            geyser = next(unit for unit in world.units if is_geyser(unit, site.x, site.y))
            site.job = geyser.job  # the refinery and its geyser share the content
            if not worker.queue and isinstance(site.job, Deposit):
                worker.queue.append(Order(OrderKind.GATHER, 0.0, 0.0, site.tag))
        else:
            site.job = Factory()
        world.news.alert(site.owner, sc_pb.BuildingComplete)
        world.count_units()
        world.sort_walkers()  # a turret can fire as soon as it is finished
        orders.finish(world, worker)


def can_be_resumed(site: Unit) -> bool:
    """True for an unfinished structure without a worker."""
    return isinstance(site.job, Site) and not site.job.builder and not site.job.is_add_on


def _stay(_worker: Unit) -> None:
    """Do nothing; never called, because `Building.grow` ends errands of construction."""


def constructs(worker: Unit) -> bool:
    """True for a worker that builds a structure."""
    return isinstance(worker.job, Errand) and worker.job.constructing


def is_geyser(unit: Unit, x: float | None = None, y: float | None = None) -> bool:
    """True if the unit is a geyser and, if x and y are given, stands at this point."""
    at = x is None or (unit.x, unit.y) == (x, y)
    return unit.type.has_vespene and unit.type.invulnerable and at


COST = 0.25
"""The share of a unit's cost that the repair of its whole life costs."""


class Repair:
    """A player's repairs in one episode.

    Args:
        pay: takes minerals and gas; if they do not suffice, takes nothing and returns False.
    """

    def __init__(self, world: World, walking: Walking, pay: Callable[[int, int], bool]) -> None:
        self._world, self._walking, self._pay = world, walking, pay
        self._minerals_due = self._vespene_due = 0.0

    def set_out(self, worker: Unit) -> None:
        """Let a worker walk to the unit that it is ordered to repair."""
        patient = self._patient(worker)
        if patient is None:
            orders.finish(self._world, worker)
        else:
            self._walking.walk_to(worker, patient, self._work)

    def _patient(self, worker: Unit) -> Unit | None:
        """The target of a worker's order, if it can be repaired."""
        unit = self._world.by_tag.get(worker.order.target_tag)
        return unit if unit is not None and can_repair(worker, unit) else None

    def _work(self, worker: Unit) -> None:
        """Repair for one loop, and continue in the next loop."""
        patient = self._patient(worker)
        if patient is None:
            orders.finish(self._world, worker)
        elif _moves(patient.type) and not self._walking.touches(worker, patient):
            self.set_out(worker)
        elif self._pay_for_work(patient):
            kind = patient.type
            patient.life = min(patient.life + kind.life / work_loops(kind), kind.life)
            worker.job = Errand(self._world.loop + 1, self._work)
        else:
            orders.finish(self._world, worker)

    def _pay_for_work(self, patient: Unit) -> bool:
        """Pay for one loop of work; False if the player has too little."""
        kind = patient.type
        share = min(1.0 / work_loops(kind), 1.0 - patient.life / kind.life) * COST
        minerals = self._minerals_due + share * kind.minerals
        vespene = self._vespene_due + share * kind.vespene
        if not self._pay(int(minerals), int(vespene)):
            return False
        self._minerals_due, self._vespene_due = minerals % 1.0, vespene % 1.0
        return True


def can_repair(worker: Unit, unit: Unit) -> bool:
    """True if a worker can repair this unit."""
    return (
        unit.owner == worker.owner
        and unit is not worker
        and unit.life < unit.type.life
        and MECHANICAL in unit.type.attributes
        and work_loops(unit.type) > 0
        and not isinstance(unit.job, Site)
    )


def work_loops(kind: UnitType) -> float:
    """The loops in which one worker repairs a unit's whole life; 0 if it cannot be repaired.

    An upgraded, lowered or lifted structure takes as long as the type from which it was made.
    """
    while kind.made_from is not None:
        kind = kind.made_from
    # The bare type of an add-on has a build time of two loops, so use the type for a barracks.
    return ADD_ONS.get((BARRACKS, kind), kind).build_time_loops


def _moves(kind: UnitType) -> bool:
    return kind.mobile or kind.afloat
