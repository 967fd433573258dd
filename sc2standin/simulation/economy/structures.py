"""Activities of structures: make units, add-ons and upgrades, lift off, land, call down MULEs.

Production makes units, and puts them beside their structure. A unit is paid for when it is ordered,
and begun when the supply suffices for it. A structure has five places in its queue and makes one
unit at a time. A structure with a reactor has eight places and makes two units at a time. Research
also takes places in the structure's queue.

An add-on is a tech lab or a reactor beside a barracks, factory or starport, which builds it. An
add-on belongs to the structure that last landed or was built beside it, and has the unit type for
that structure (such as BarracksTechLab). An add-on without a structure has the bare type (TechLab).
If the structure is lost before the add-on is finished, the add-on is lost, too. If an add-on's type
changes, its research is cancelled and refunded.

Each upgrade is researched once, by one structure. A level of an upgrade needs the level before it.

Orbital commands use energy for MULEs and scans. A MULE gathers from the field at which it was
called down, and disappears after a while. A scan shows a part of the map, and the cloaked units in
it, for a while.

`Flight` moves barracks, factories, starports and town halls that have lifted off. A flying
structure moves straight, over everything and through other flying structures. Landing takes a
while. If the landing place is not free when the landing ends, the structure stays in the air.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.research import RESEARCH_OF, Research
from sc2standin.data.unit_types.files import (
    ADD_ON_OFFSET,
    ADD_ONS,
    BARE_ADD_ONS,
    MULE,
    REACTOR,
    TECH_LAB,
)
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.economy.workers.building import FIRST_LIFE, Building
from sc2standin.simulation.economy.workers.mining import Walking
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import STOPPED, Factory, Order, Point, Site, Term, Unit, way_to
from sc2standin.simulation.world import Scan, World

RINGS, PLACES_A_RING = 12, 16
"""The number of rings around a structure, and of places for new units in each ring."""
RING_SPACING = 2.2
"""Distance between two rings of places around a structure, in radii of the new unit."""
PLACES, PLACES_WITH_REACTOR = 5, 8
"""The most orders in a structure's queue, those in progress included."""
QUEUED = (OrderKind.TRAIN, OrderKind.RESEARCH)
"""The kinds of orders that a structure queues."""


class Production:
    """The structures that make something, in one episode.

    Args:
        done: called with a structure and its finished order, after the order's unit was created.
        loops_for: returns the number of loops to make a unit or to finish research.
    """

    def __init__(
        self,
        world: World,
        terrain: Terrain,
        routes: Routes,
        done: Callable[[Unit, Order], None],
        *,
        owner: int,
        loops_for: Callable[[UnitType | Research], int],
    ) -> None:
        self._world, self._terrain, self._routes = world, terrain, routes
        self._owner, self._loops_for, self._done = owner, loops_for, done

    def has_place(self, factory: Unit) -> bool:
        """True if one more unit can be ordered."""
        places = PLACES_WITH_REACTOR if self._has_reactor(factory) else PLACES
        return factory.order.makes is None or 1 + len(factory.queue) < places

    def has_tech_lab(self, factory: Unit) -> bool:
        """True if units that need a tech lab can be trained."""
        return self._add_on(factory) is TECH_LAB

    def _has_reactor(self, factory: Unit) -> bool:
        return self._add_on(factory) is REACTOR

    def _add_on(self, factory: Unit) -> UnitType | None:
        """The bare type of the finished add-on beside a structure; None without one."""
        tag = factory.job.add_on if isinstance(factory.job, Factory) else 0
        unit = self._world.by_tag.get(tag) if tag else None
        finished = unit is not None and not isinstance(unit.job, Site)
        return BARE_ADD_ONS.get(unit.type) if unit is not None and finished else None

    def order(self, factory: Unit, order: Order) -> None:
        """Add a paid order to a structure's queue."""
        if factory.order.makes is not None:
            factory.queue.append(order)
        else:
            factory.order = order

    def cancel(self, factory: Unit, place: int) -> Order | None:
        """Remove and return the order at this place of the queue; None if it cannot be removed."""
        orders_made = (factory.order, *factory.queue)
        if not 0 <= place < len(orders_made) or not isinstance(factory.job, Factory):
            return None
        order = orders_made[place]
        if order.makes is None or order.kind == OrderKind.LIFT:
            return None
        _take(factory, factory.job, place)
        return order

    def food_begun(self) -> float:
        """Supply of the units in production."""
        return sum(
            order.makes.food
            for unit in self._world.structures[self._owner]
            if isinstance(unit.job, Factory) and unit.job.done_at
            for order in (unit.order, *unit.queue)[: len(unit.job.done_at)]
            if order.makes is not None
        )

    def advance(self, free_food: Callable[[], float]) -> None:
        """Begin and finish orders of structures, for one loop."""
        loop = self._world.loop
        for factory in self._world.structures[self._owner]:
            job = factory.job
            if not isinstance(job, Factory) or factory.order.makes is None:
                continue
            for place in reversed(range(len(job.done_at))):
                if loop >= job.done_at[place]:
                    self._finish(factory, _take(factory, job, place), job)
            self._begin(factory, job, free_food)

    def _begin(self, factory: Unit, job: Factory, free_food: Callable[[], float]) -> None:
        """Begin the next orders of a structure, if there is supply for them."""
        waiting = (factory.order, *factory.queue)[len(job.done_at) :]
        if not waiting or (job.done_at and not self._has_reactor(factory)):
            return
        for order in waiting[: 2 - len(job.done_at) if self._has_reactor(factory) else 1]:
            kind = order.makes
            if kind is None or (kind.food and free_food() < kind.food):
                return
            # Subtract a loop, because real SCVs take 272 loops but appear 271 loops apart.
            job.done_at.append(self._world.loop + self._loops_for(kind) - 1)

    def _finish(self, factory: Unit, order: Order, job: Factory) -> None:
        if order.kind == OrderKind.TRAIN and isinstance(order.makes, UnitType):
            self._create(factory, order.makes, job)
        self._done(factory, order)

    def _place(self, factory: Unit, kind: UnitType) -> Point:
        """The free place nearest to the front of a structure, or the front itself."""
        front = self._terrain.clamp(factory.x, factory.y - factory.type.radius - kind.radius)
        for ring in range(RINGS):
            distance = factory.type.radius + kind.radius * (1 + RING_SPACING * ring)
            for i in range(PLACES_A_RING):
                # Try the places from the front on, alternately to the left and to the right.
                turn = (i + 1) // 2 * (1 - i % 2 * 2) / PLACES_A_RING * math.tau
                x = factory.x + distance * math.sin(turn)
                y = factory.y - distance * math.cos(turn)
                if self._is_free(x, y, kind.radius):
                    return x, y
        return front

    def _is_free(self, x: float, y: float, radius: float) -> bool:
        return not self._routes.is_blocked(x, y) and all(
            way_to(unit, x, y)[2] >= unit.type.radius + radius for unit in self._world.walkers
        )

    def _create(self, factory: Unit, kind: UnitType, job: Factory) -> None:
        """Put a new unit in front of its structure."""
        self._routes.update()
        unit = self._world.spawn(kind, self._owner, [self._place(factory, kind)])[0]
        for order in job.rally:
            orders.give(self._world, unit, order, queued=False)


def _take(factory: Unit, job: Factory, place: int) -> Order:
    """Take an order out of a structure's queue."""
    waiting = [factory.order, *factory.queue]
    order = waiting.pop(place)
    del job.done_at[place : place + 1]
    factory.order, factory.queue[:] = (waiting or [STOPPED])[0], waiting[1:]
    return order


_WITH_ADD_ONS = {kind for kind, _bare in ADD_ONS}


class AddOns:
    """A player's add-ons in one episode.

    Args:
        loops_for: returns the number of loops to make an add-on.
        give_up: cancels all orders of a structure.
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
        """The player's list of structures at the last `advance`; each change makes a new list."""
        self._sites: list[tuple[Unit, Unit]] = []
        """The add-ons under construction, each as (structure, add-on)."""

    def begin(self, structure: Unit, kind: UnitType) -> None:
        """Begin an add-on beside a structure; the add-on's place must be free."""
        world = self._world
        site = world.spawn(kind, structure.owner, [add_on_place(structure.x, structure.y)])[0]
        loops = self._loops_for(kind)
        site.job = Site(loops, loops, is_add_on=True)
        site.life = kind.life * FIRST_LIFE
        world.count_units()
        self._walking.step_aside(site)
        self._sites.append((structure, site))

    def owner_of(self, site: Unit) -> Unit | None:
        """The structure that builds this add-on; None for a site that is no add-on."""
        return next((structure for structure, one in self._sites if one is site), None)

    def cancel(self, structure: Unit) -> None:
        """Remove the add-on that a structure is building."""
        self._world.doomed += [site.tag for one, site in self._sites if one is structure]

    def finish(self, structure: Unit) -> None:
        """Finish the add-on that a structure is building."""
        for one, site in self._sites:
            if one is structure:
                site.job = Factory()
        self._sites = [pair for pair in self._sites if pair[0] is not structure]
        self._world.count_units()

    def advance(self) -> None:
        """Build add-ons for one loop, and assign finished ones to the structures beside them."""
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
        """Give each add-on to the structure beside it, and change its type for that structure."""
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
        """Stop building an add-on if the add-on or its structure was destroyed."""
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
    """The centre of the add-on that belongs to a structure at this point."""
    return x + ADD_ON_OFFSET[0], y + ADD_ON_OFFSET[1]


class Laboratory:
    """A player's research in one episode."""

    def __init__(self, world: World, owner: int) -> None:
        self._world, self._owner = world, owner

    def allows(self, research: Research, *, any_tech: bool) -> bool:
        """True if an upgrade can be begun now; `any_tech` lifts the need for certain structures."""
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
        """The research that a general ability means: the first level that is not begun.

        Returns the last level if all are begun, and None if the structure has no such levels.
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


ENERGY = 50.0
"""The energy that a MULE or a scan costs."""
MULE_LOOPS = 1440
"""The lifetime of a MULE, in loops: 90 s at 16 loops a second."""
SCAN_LOOPS = 196
"""The duration of a scan, in loops: 12.2775 s at 16 loops a second."""
SCAN_CELLS = 13.0
"""Radius of a scan, as in the table of effects."""


class Orbital:
    """The MULEs and scans of a player's orbital commands in one episode."""

    def __init__(self, world: World, routes: Routes, owner: int) -> None:
        self._world, self._routes, self._owner = world, routes, owner
        self._mules: list[tuple[int, int]] = []
        """The loop at which each MULE disappears, and the MULE's tag."""

    def cast(self, unit: Unit, order: Order) -> bool:
        """Call down a MULE or a scan; returns False if the energy does not suffice."""
        if unit.energy < ENERGY:
            return False
        unit.energy -= ENERGY
        if order.kind == OrderKind.SCAN:
            until = self._world.loop + SCAN_LOOPS
            self._world.scans.append(Scan(self._owner, order.x, order.y, SCAN_CELLS, until))
        else:
            self._call_mule(order)
        return True

    def _call_mule(self, order: Order) -> None:
        world, target = self._world, self._world.by_tag.get(order.target_tag)
        place = (order.x, order.y) if target is None else (target.x, target.y)
        self._routes.update()
        (mule,) = world.spawn(MULE, self._owner, [self._routes.blocks.free_point(*place)])
        mule.term = Term(world.loop + MULE_LOOPS, MULE_LOOPS)
        self._mules.append((mule.term.until, mule.tag))
        if target is not None:
            gather = Order(OrderKind.GATHER, 0.0, 0.0, target.tag)
            orders.give(world, mule, gather, queued=False)

    def advance(self) -> None:
        """Remove the MULEs and scans whose time is over."""
        world = self._world
        while self._mules and self._mules[0][0] <= world.loop:
            _until, tag = self._mules.pop(0)
            if tag in world.by_tag:
                world.doomed.append(tag)
                world.news.alert(self._owner, sc_pb.MULEExpired)
        if world.scans:
            world.scans = [one for one in world.scans if one.until > world.loop]


LAND_LOOPS = 32
"""Time to land, in loops; lifting off takes as long."""
_STANDING = (OrderKind.IDLE, OrderKind.HOLD)


class Flight:
    """A player's structures in the air, in one episode."""

    def __init__(self, world: World, building: Building, walking: Walking, owner: int) -> None:
        self._world, self._building, self._walking = world, building, walking
        self._owner = owner

    def advance(self) -> None:
        """Let the structures in the air fly and land for one loop."""
        for unit in self._world.structures[self._owner]:
            if unit.type.afloat and isinstance(unit.job, Factory):
                self._fly(unit, unit.job)

    def _fly(self, unit: Unit, job: Factory) -> None:
        order, world = unit.order, self._world
        target = world.by_tag.get(order.target_tag)
        if order.target_tag and target is None:
            orders.finish(world, unit)
        elif order.kind not in _STANDING:
            goal = (order.x, order.y) if target is None else (target.x, target.y)
            way_x, way_y, distance = way_to(unit, *goal)
            if distance > unit.type.step:
                share = unit.type.step / distance
                unit.x += way_x * share
                unit.y += way_y * share
                unit.facing = math.atan2(way_y, way_x) % math.tau
            elif distance > 0.0:
                unit.x, unit.y = goal
            elif order.kind == OrderKind.LAND:
                self._land(unit, job)
                return
            elif target is None:
                orders.reach_point(world, unit)
        job.done_at.clear()  # a landing that was interrupted begins again

    def _land(self, unit: Unit, job: Factory) -> None:
        """Continue a landing for one loop; the structure is above its landing place already."""
        loop, kind = self._world.loop, unit.type.made_from
        if not job.done_at:
            job.done_at.append(loop + LAND_LOOPS)
        elif loop >= job.done_at[0] and kind is not None:
            job.done_at.clear()
            lands = self._building.can_place(kind, unit.x, unit.y) == error_pb.Success
            if lands:
                unit.queue.clear()
            orders.finish(self._world, unit)
            if lands:
                self._world.become(unit, kind)
                self._walking.step_aside(unit)
