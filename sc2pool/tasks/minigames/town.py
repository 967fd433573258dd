"""A town: the learner's units and structures on a map, and the steps that make the town grow.

A task's actions are some of the steps (`TownStep`). `Town` chooses the place of a new structure,
and the worker that builds it, by simple rules. The place is the free place nearest to the command
centre that is not near minerals or geysers. The worker nearest to that place builds the structure.

Rules of the steps: an impossible step is masked and gives no commands. Some tasks also mask a step
that is possible but useless now. A useless step that a policy chooses still gives its commands.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.units import unit_id

BARRACKS = unit_id("Barracks")
COMMAND_CENTER = unit_id("CommandCenter")
GEYSER = unit_id("VespeneGeyser")
MARINE = unit_id("Marine")
MINERAL_FIELD = unit_id("MineralField")
REFINERY = unit_id("Refinery")
SCV = unit_id("SCV")
SUPPLY_DEPOT = unit_id("SupplyDepot")


FOOTPRINTS = {
    COMMAND_CENTER: (2.5, 2.5),
    SUPPLY_DEPOT: (1.0, 1.0),
    REFINERY: (1.5, 1.5),
    BARRACKS: (1.5, 1.5),
    MINERAL_FIELD: (1.0, 0.5),
    GEYSER: (1.5, 1.5),
}
"""Half the width and half the height of the ground that a unit of each type covers, in cells."""
BUILT_BY = {
    commands.BUILD_SUPPLY_DEPOT: SUPPLY_DEPOT,
    commands.BUILD_REFINERY: REFINERY,
    commands.BUILD_BARRACKS: BARRACKS,
}
FACTORIES = COMMAND_CENTER, BARRACKS
"""The structures that train units."""
COSTS = {SCV: 50, SUPPLY_DEPOT: 100, REFINERY: 75, BARRACKS: 150}
"""The price of a unit or structure, in minerals."""
FROM_RESOURCES = 3.5
"""Centres of structures and of mineral fields or geysers are at least this far apart, in cells."""
RESERVED_LOOPS = 320
"""The time, in game loops, for which the place of an ordered structure stays reserved."""
QUEUE_PLACES = 5
FIELD_PLACES = 2
"""The number of workers that a mineral field has room for: one gathers while another walks."""
TOWN_SIZE = 9

Unit = raw_pb2.Unit
Point = tuple[float, float]


class Town:
    """The learner's units and resources in one observation.

    Args:
        area: the rectangle in which structures are placed.
        ground: bool (y, x): the cells on which structures can stand. None for all cells.
        passage_cells: free cells between two structures.

    Attributes:
        minerals, vespene: the amounts that can be spent.
        food_used, food_cap: used and provided supply.
        workers: all SCVs.
        idle: the SCVs without an order.
    """

    def __init__(
        self,
        area: PlayableArea,
        ground: NDArray[np.bool_] | None = None,
        passage_cells: float = 0.0,
    ) -> None:
        self.area = area
        self._ground, self._passage = ground, passage_cells
        self._workplaces: dict[int, int] = {}
        """For each worker's tag, the tag of its mineral field."""
        self._reserved: list[tuple[int, float, float, int]] = []
        """Reserved places of ordered structures: last loop of the reservation, x, y, and type."""
        self.update(sc_pb.Observation())

    def update(self, observation: sc_pb.Observation) -> None:
        """Update the town's units and resources from an observation."""
        player = observation.player_common
        self.loop = observation.game_loop
        self.minerals, self.vespene = player.minerals, player.vespene
        self.food_used, self.food_cap = player.food_used, player.food_cap
        units: dict[int, list[Unit]] = {}
        for unit in observation.raw_data.units:
            if unit.alliance != raw_pb2.Enemy:
                units.setdefault(unit.unit_type, []).append(unit)
        self._units = units
        self.workers = self.all(SCV)
        self.idle = [unit for unit in self.workers if not unit.orders]
        self._reserved = [place for place in self._reserved if place[0] > self.loop]

    def all(self, unit_type: int) -> list[Unit]:
        """The units of a type that do not belong to the enemy."""
        return self._units.get(unit_type, [])

    def finished(self, unit_type: int) -> list[Unit]:
        """The finished structures of a type."""
        return [unit for unit in self.all(unit_type) if unit.build_progress >= 1]

    def coming(self, unit_type: int) -> int:
        """The number of structures of a type that are being built or have been ordered."""
        on_the_way = sum(
            BUILT_BY.get(order.ability_id) == unit_type
            for unit in self.workers
            for order in unit.orders
        )
        sites = len(self.all(unit_type)) - len(self.finished(unit_type))
        return max(on_the_way, sites)  # a builder keeps its order until the structure is finished

    @property
    def free_supply(self) -> int:
        """Unused supply, including the supply of depots that are coming."""
        return self.food_cap + 8 * self.coming(SUPPLY_DEPOT) - self.food_used

    @property
    def factories(self) -> int:
        """The number of structures that train units, including barracks that are coming."""
        return sum(len(self.finished(one)) for one in FACTORIES) + self.coming(BARRACKS)

    def vector(self, *more: float) -> NDArray[np.float32]:
        """The town in numbers, followed by a task's own numbers, all clipped to [0, 1].

        A structure is "coming" if it is being built or has been ordered.

        Returns:
            (9 + len(more),) float32:

            Values 0 to 2: minerals / 1000, used supply / 200, and provided supply / 200.
            Value 3: free supply / 20, which includes the supply of depots that are coming.
            Values 4 and 5: the number of SCVs / 50, and of idle SCVs / 12.
            Value 6: the number of units in the queues of the command centres / 5.
            Values 7 and 8: the number of supply depots / 20, and of depots that are coming / 4.
        """
        training = sum(len(unit.orders) for unit in self.all(COMMAND_CENTER))
        shares = (
            self.minerals / 1000,
            self.food_used / 200,
            self.food_cap / 200,
            self.free_supply / 20,
            len(self.workers) / 50,
            len(self.idle) / 12,
            training / QUEUE_PLACES,
            len(self.finished(SUPPLY_DEPOT)) / 20,
            self.coming(SUPPLY_DEPOT) / 4,
            *more,
        )
        return np.clip(np.array(shares, dtype=np.float32), 0.0, 1.0)

    def can_pay(self, unit_type: int) -> bool:
        """True if the town has a worker and enough minerals for a structure of this type."""
        return self.minerals >= COSTS[unit_type] and bool(self.workers)

    def can_train(self, factory_type: int) -> bool:
        """True if minerals, supply and a finished structure's queue suffice for one more unit."""
        return (
            self.minerals >= COSTS[SCV]
            and self.food_used < self.food_cap
            and bool(self._factories(factory_type))
        )

    def train(self, ability_id: int, factory_type: int) -> Commands:
        """Train a unit in the structure with the shortest queue."""
        factories = self._factories(factory_type)
        if not factories:
            return []
        emptiest = min(factories, key=lambda unit: len(unit.orders))
        return [commands.command(ability_id, [emptiest.tag])]

    def gather_minerals(self) -> Commands:
        """Send idle workers to the mineral fields nearest to a command centre, up to two per field.

        If all fields have two workers, the limit becomes four, and so on. A worker that carries
        minerals to the command centre still counts at its field.
        """
        fields = self.all(MINERAL_FIELD)
        if not fields:
            return []
        homes = self.finished(COMMAND_CENTER)
        ways = {one.tag: min((_distance(one, home) for home in homes), default=0) for one in fields}
        busy = [worker for worker in self.workers if worker.orders]
        sent, self._workplaces = self._workplaces, {}
        for worker in busy:
            targets = [one.target_unit_tag for one in worker.orders if one.target_unit_tag in ways]
            if targets or worker.tag in sent:
                self._workplaces[worker.tag] = targets[0] if targets else sent[worker.tag]
        crowd = Counter(self._workplaces.values())
        orders = []
        for worker in self.idle:
            field = min(
                fields,
                key=lambda one: (
                    crowd[one.tag] // FIELD_PLACES,
                    ways[one.tag],
                    _distance(one, worker),
                ),
            )
            crowd[field.tag] += 1
            self._workplaces[worker.tag] = field.tag
            orders.append(commands.gather([worker.tag], field.tag))
        return orders

    def build(self, ability_id: int) -> Commands:
        """Build a structure. The builder gathers minerals again afterwards."""
        kind = BUILT_BY[ability_id]
        place = self._free_place(kind)
        return [] if place is None else self._send_builder(ability_id, place, place)

    def build_refinery(self) -> Commands:
        """Build a refinery on the free geyser nearest to the command centre."""
        centre = self._centre()
        taken = {at(unit) for unit in self.all(REFINERY)}
        taken |= {(x, y) for _, x, y, _ in self._reserved}
        free = [unit for unit in self.all(GEYSER) if at(unit) not in taken]
        if not free:
            return []
        geyser = min(free, key=lambda unit: math.dist(at(unit), centre))
        return self._send_builder(commands.BUILD_REFINERY, at(geyser), geyser.tag)

    def needs_gas_worker(self) -> Unit | None:
        """A refinery that can employ more workers; None if no refinery can."""
        for refinery in self.finished(REFINERY):
            if refinery.assigned_harvesters < refinery.ideal_harvesters:
                return refinery
        return None

    def gather_gas(self) -> Commands:
        """If a refinery has room, send it the nearest worker that is idle or mines minerals."""
        refinery = self.needs_gas_worker()
        if refinery is None:
            return []
        fields = {field.tag for field in self.all(MINERAL_FIELD)}
        miners = [
            unit
            for unit in self.workers
            if not unit.orders or unit.orders[0].target_unit_tag in fields
        ]
        if not miners:
            return []
        nearest = min(miners, key=lambda unit: _distance(unit, refinery))
        self._workplaces.pop(nearest.tag, None)
        return [commands.gather([nearest.tag], refinery.tag)]

    def _factories(self, factory_type: int) -> list[Unit]:
        return [u for u in self.finished(factory_type) if len(u.orders) < QUEUE_PLACES]

    def _centre(self) -> Point:
        for unit in self.all(COMMAND_CENTER):
            return at(unit)
        return self.area.centre

    def _send_builder(self, ability_id: int, place: Point, target: Point | int) -> Commands:
        free = [
            unit
            for unit in self.workers
            if not any(order.ability_id in BUILT_BY for order in unit.orders)
        ]
        if not free:
            return []
        builder = min(free, key=lambda unit: math.dist(at(unit), place))
        kind = BUILT_BY[ability_id]
        self._reserved.append((self.loop + RESERVED_LOOPS, *place, kind))
        orders = [commands.command(ability_id, [builder.tag], target)]
        fields = self.all(MINERAL_FIELD)
        if fields and kind != REFINERY:  # the builder of a refinery gathers the refinery's gas
            nearest = min(fields, key=lambda unit: _distance(unit, builder))
            orders.append(commands.gather([builder.tag], nearest.tag, queued=True))
        return orders

    def _free_place(self, kind: int) -> Point | None:
        """The free place for a structure nearest to the command centre."""
        half, area, centre = FOOTPRINTS[kind][0], self.area, self._centre()
        odd = half % 1.0
        columns = np.arange(math.ceil(area.left), math.floor(area.right)) + odd
        rows = np.arange(math.ceil(area.bottom), math.floor(area.top)) + odd
        x, y = (axis.ravel() for axis in np.meshgrid(columns, rows, indexing="ij"))
        free = (area.left <= x - half) & (x + half <= area.right)
        free &= (area.bottom <= y - half) & (y + half <= area.top)
        taken = np.array(list(self._taken()), dtype=np.float64).reshape(-1, 4)
        apart = half + self._passage
        free &= (
            (abs(x[:, None] - taken[:, 0]) >= apart + taken[:, 2])
            | (abs(y[:, None] - taken[:, 1]) >= apart + taken[:, 3])
        ).all(axis=1)
        resources = [u.pos for u in (*self.all(MINERAL_FIELD), *self.all(GEYSER))]
        points = np.array([(pos.x, pos.y) for pos in resources], dtype=np.float64).reshape(-1, 2)
        away = np.hypot(x[:, None] - points[:, 0], y[:, None] - points[:, 1])
        free &= (away >= FROM_RESOURCES).all(axis=1)
        x, y = x[free], y[free]
        nearest_first = np.lexsort((y, x, np.hypot(x - centre[0], y - centre[1])))
        places = zip(x[nearest_first].tolist(), y[nearest_first].tolist(), strict=True)
        return next((place for place in places if self._is_ground(*place, half)), None)

    def _is_ground(self, x: float, y: float, half: float) -> bool:
        """True if structures can stand on these cells."""
        if self._ground is None:
            return True
        columns, rows = (slice(int(at - half), int(at + half)) for at in (x, y))
        return bool(self._ground[rows, columns].all())

    def _taken(self) -> Iterable[tuple[float, float, float, float]]:
        """The centre, half width and half height of each structure, resource and reserved place."""
        for kind, footprint in FOOTPRINTS.items():
            for unit in self.all(kind):
                yield unit.pos.x, unit.pos.y, *footprint
        for _, x, y, kind in self._reserved:
            yield x, y, *FOOTPRINTS[kind]


def at(unit: Unit) -> Point:
    """A unit's position."""
    return unit.pos.x, unit.pos.y


def _distance(unit: Unit, other: Unit) -> float:
    return math.dist(at(unit), at(other))


# ---- the steps of a town -------------------------------------------------------------------------


N_GEYSERS = 4
SUPPLY_AHEAD = 3
"""This much free supply per structure that trains units is enough until a newly ordered supply
depot is built."""


class TownStep(NamedTuple):
    """The commands of a town's step, and the tests of whether the step is possible and useful."""

    is_possible: Callable[[Town], bool]
    orders: Callable[[Town], Commands]
    is_useful: Callable[[Town], bool] = lambda _: True


def needs_depot(town: Town) -> bool:
    """True if there is no supply depot, or if supply may run out before another depot is built."""
    depots = len(town.finished(SUPPLY_DEPOT)) + town.coming(SUPPLY_DEPOT)
    return not depots or town.free_supply < SUPPLY_AHEAD * town.factories


WAIT = TownStep(lambda _: True, lambda _: [])
GATHER_MINERALS = TownStep(
    lambda town: bool(town.idle and town.all(MINERAL_FIELD)), Town.gather_minerals
)
TRAIN_SCV = TownStep(
    lambda town: town.can_train(COMMAND_CENTER),
    lambda town: town.train(commands.TRAIN_SCV, COMMAND_CENTER),
)
FIRST_STEPS = WAIT, GATHER_MINERALS, TRAIN_SCV
"""The steps that every town has; they are the first actions of each task with a town."""
BUILD_DEPOT = TownStep(
    lambda town: town.can_pay(SUPPLY_DEPOT), lambda town: town.build(commands.BUILD_SUPPLY_DEPOT)
)
BUILD_BARRACKS = TownStep(
    lambda town: town.can_pay(BARRACKS) and bool(town.finished(SUPPLY_DEPOT)),
    lambda town: town.build(commands.BUILD_BARRACKS),
)
BUILD_DEPOT_IN_TIME = BUILD_DEPOT._replace(is_useful=needs_depot)
TRAIN_MARINE = TownStep(
    lambda town: town.can_train(BARRACKS),
    lambda town: town.train(commands.TRAIN_MARINE, BARRACKS),
)
BUILD_REFINERY = TownStep(
    lambda town: (
        town.can_pay(REFINERY) and len(town.all(REFINERY)) + town.coming(REFINERY) < N_GEYSERS
    ),
    Town.build_refinery,
)
GATHER_GAS = TownStep(lambda town: town.needs_gas_worker() is not None, Town.gather_gas)


def take(step: TownStep, town: Town) -> Commands:
    """The commands of a step; the list is empty if the step is impossible."""
    return step.orders(town) if step.is_possible(town) else []


def masks(steps: Iterable[TownStep], town: Town) -> NDArray[np.bool_]:
    """The action mask, which is true for each step that is possible and useful."""
    return np.array([step.is_possible(town) and step.is_useful(town) for step in steps])
