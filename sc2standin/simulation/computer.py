"""The computer player of a melee.

* Class Level: the player's behaviour at one difficulty.
* Function next_steps: computes the player's next steps from its possessions alone.
* Class Computer: looks at its town, asks for the next steps, and gives the orders.

A computer player sees the whole map. Computer players and clients have the same economic rules.

A computer player acts only at fixed loops, so that the game does not depend on the sizes of steps.

We chose how the levels differ, because the real game's levels are in scripts that we do not have.
A computer of a higher level acts more often, has more workers, has more barracks and has them
earlier, and attacks earlier and with more marines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.files import BARRACKS, COMMAND_CENTER, SCV, TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.economy.workers.building import constructs
from sc2standin.simulation.rules import fields_near
from sc2standin.simulation.units import OPPONENT, Factory, Order, Point, Site, Unit, way_to
from sc2standin.simulation.world import World

DEPOT, MARINE = TYPE_BY_NAME["SupplyDepot"], TYPE_BY_NAME["Marine"]
HOME_CELLS = 15.0
"""The opponent's soldiers within this distance of a town hall, in cells, are a threat."""
AWAY_CELLS = 40.0
"""A marine that is farther than this many cells from all town halls counts as sent to attack."""
LATTICE_CELLS = 4
"""Distance between two building places, in cells: 3 for the largest structure, and 1 free cell."""
FARTHEST_CELLS = 24
"""The greatest offset of a new structure from its town hall along each axis, in cells."""
FROM_FIELDS_CELLS = 5.0
"""Least distance from a new structure to mineral fields and geysers, so that workers can pass."""


class Computer:
    """The computer player of one episode."""

    def __init__(
        self,
        world: World,
        economy: Economy,
        difficulty: sc_pb.Difficulty.ValueType,
        give_up: Callable[[], None],
    ) -> None:
        self._world, self._economy, self._give_up = world, economy, give_up
        self._owner = economy.owner
        self._enemy = OPPONENT[economy.owner]
        self._level = LEVELS.get(difficulty, VERY_HARD)
        self._attacks = 0
        self._defenders: set[int] = set()
        """Tags of the workers that fight."""

    def apply(self) -> int:
        """Act if it is time to act; returns the loop at which the computer acts again."""
        every = self._level.thinks_every_loops
        if self._world.loop % every == 0:
            self._think()
        return self._world.loop - self._world.loop % every + every

    def _think(self) -> None:
        halls = self._finished(COMMAND_CENTER)
        if self._is_lost(halls):
            self._give_up()
            return
        self._defend(halls)
        self._gather(halls)
        self._press_on(halls)
        for step in next_steps(self._holdings(halls), self._level):
            self._carry_out(step, halls)

    def _is_lost(self, halls: list[Unit]) -> bool:
        """True if the player has no soldiers, cannot train, and lacks workers or a town hall."""
        army = self._world.armies[self._owner]
        if army.soldiers or (halls and army.workers):
            return False
        trained, factories = (SCV, halls) if halls else (MARINE, self._finished(BARRACKS))
        trains = any(one.order.kind == OrderKind.TRAIN for one in factories)
        can_train = bool(factories) and self._economy.allows(trained) == error_pb.Success
        return not (trains or can_train)

    def _holdings(self, halls: list[Unit]) -> Holdings:
        world, economy = self._world, self._economy
        mine = world.owned_by(self._owner)
        coming = [one.order.makes for one in mine if one.order.kind == OrderKind.BUILD]
        return Holdings(
            loop=world.loop,
            minerals=economy.minerals,
            free_food=economy.free_food(),
            workers=world.armies[self._owner].workers
            + sum(unit.order.makes is SCV for unit in halls)
            + sum(order.makes is SCV for unit in halls for order in unit.queue),
            depots=len(self._finished(DEPOT)),
            depots_coming=coming.count(DEPOT),
            barracks=len(self._finished(BARRACKS)),
            barracks_coming=coming.count(BARRACKS),
            idle_halls=len(_with_room(halls)),
            idle_barracks=len(_with_room(self._finished(BARRACKS))),
            idle_marines=len(self._idle_marines()),
            attacks=self._attacks,
        )

    def _finished(self, kind: UnitType) -> list[Unit]:
        structures = self._world.structures[self._owner]
        return [one for one in structures if one.type is kind and not isinstance(one.job, Site)]

    def _idle_marines(self) -> list[Unit]:
        return [
            unit
            for unit in self._world.walkers
            if unit.owner == self._owner
            and unit.type is MARINE
            and unit.order.kind == OrderKind.IDLE
        ]

    def _carry_out(self, step: Step, halls: list[Unit]) -> None:
        if step is Step.ATTACK:
            self._attacks += 1
            self._attack(self._idle_marines())
        elif step is Step.TRAIN_SCV:
            self._train(_with_room(halls), SCV)
        elif step is Step.TRAIN_MARINE:
            self._train(_with_room(self._finished(BARRACKS)), MARINE)
        else:
            self._build(DEPOT if step is Step.BUILD_DEPOT else BARRACKS, halls)

    def _train(self, factories: list[Unit], kind: UnitType) -> None:
        if factories:
            emptiest = min(factories, key=_queued)
            self._economy.make(emptiest, Order(OrderKind.TRAIN, 0.0, 0.0, 0, kind))

    def _build(self, kind: UnitType, halls: list[Unit]) -> None:
        workers = [
            unit
            for unit in self._world.workers
            if unit.owner == self._owner and unit.order.kind == OrderKind.GATHER
        ]
        if not halls or not workers:
            return
        for x, y in self._places(halls[0]):
            place = self._economy.building.snap(kind, x, y)
            if place is not None and self._suits(kind, place):
                worker = min(workers, key=lambda one: way_to(one, *place)[2])
                order = Order(OrderKind.BUILD, *place, 0, kind)
                self._economy.building.order(worker, order, queued=False)
                return

    def _suits(self, kind: UnitType, place: Point) -> bool:
        resources = (
            unit
            for unit in self._world.units
            if unit.type.invulnerable and (unit.type.has_minerals or unit.type.has_vespene)
        )
        return self._economy.building.can_place(kind, *place) == error_pb.Success and all(
            way_to(one, *place)[2] >= FROM_FIELDS_CELLS for one in resources
        )

    def _places(self, hall: Unit) -> Iterator[Point]:
        """The places around a town hall, the nearest first."""
        cells = range(-FARTHEST_CELLS, FARTHEST_CELLS + 1, LATTICE_CELLS)
        offsets = sorted(
            (math.hypot(dx, dy), dx, dy)
            for dx in cells
            for dy in cells
            if max(abs(dx), abs(dy)) > 4
        )
        return ((hall.x + dx, hall.y + dy) for _distance, dx, dy in offsets)

    def _gather(self, halls: list[Unit]) -> None:
        """Let each idle worker gather at the field with the fewest workers."""
        if not halls:
            return
        fields = fields_near(self._world, (halls[0].x, halls[0].y))
        if not fields:
            return
        crowd = {field.tag: 0 for field in fields}
        for worker in self._world.workers:
            if worker.workplace in crowd:
                crowd[worker.workplace] += 1
        for unit in self._world.walkers:
            idle = unit.order.kind == OrderKind.IDLE and unit.tag not in self._defenders
            if unit.owner == self._owner and unit.type is SCV and idle:
                field = min(fields, key=lambda one: crowd[one.tag])
                crowd[field.tag] += 1
                gather = Order(OrderKind.GATHER, 0.0, 0.0, field.tag)
                orders.give(self._world, unit, gather, queued=False)

    def _defend(self, halls: list[Unit]) -> None:
        """Let marines, and on some levels workers, attack the units that threaten the town."""
        world = self._world
        threats = [
            unit
            for unit in world.walkers
            if unit.owner == self._enemy
            and unit.type.weapon is not None
            and any(way_to(unit, hall.x, hall.y)[2] < HOME_CELLS for hall in halls)
        ]
        self._defenders &= world.by_tag.keys()
        if not threats:
            for tag in sorted(self._defenders):
                orders.finish(world, world.by_tag[tag])
            self._defenders.clear()
            return
        nearest = min(threats, key=lambda one: way_to(one, halls[0].x, halls[0].y)[2])
        attack = Order(OrderKind.ATTACK, nearest.x, nearest.y, 0)
        for marine in self._idle_marines():
            orders.give(world, marine, attack, queued=False)
        if self._level.workers_fight:
            self._call_workers(attack, len(threats) + 2)

    def _call_workers(self, attack: Order, wanted: int) -> None:
        world = self._world
        for tag in sorted(self._defenders):
            if world.by_tag[tag].order.kind != OrderKind.ATTACK:
                orders.give(world, world.by_tag[tag], attack, queued=False)
        free = [
            unit
            for unit in world.owned_by(self._owner)
            if unit.type is SCV and unit.tag not in self._defenders and not constructs(unit)
        ]
        free.sort(key=lambda one: way_to(one, attack.x, attack.y)[2])
        for worker in free[: max(0, wanted - len(self._defenders))]:
            orders.give(world, worker, attack, queued=False)
            self._defenders.add(worker.tag)

    def _press_on(self, halls: list[Unit]) -> None:
        """Send idle marines that are far from the town to their next target."""
        away = [
            marine
            for marine in self._idle_marines()
            if all(way_to(marine, hall.x, hall.y)[2] > AWAY_CELLS for hall in halls)
        ]
        self._attack(away)

    def _attack(self, marines: list[Unit]) -> None:
        """Send marines to the client's structure that is nearest to the first marine."""
        targets = self._world.structures[self._enemy] or self._world.owned_by(self._enemy)
        if not targets or not marines:
            return
        leader = marines[0]
        target = min(targets, key=lambda one: way_to(leader, one.x, one.y)[2])
        for marine in marines:
            order = Order(OrderKind.ATTACK, target.x, target.y, 0)
            orders.give(self._world, marine, order, queued=False)


def _queued(factory: Unit) -> int:
    return len(factory.queue) + (factory.order.kind == OrderKind.TRAIN)


def _with_room(factories: list[Unit]) -> list[Unit]:
    """The structures with fewer than `MOST_QUEUED` units in training or in their queue."""
    return [one for one in factories if isinstance(one.job, Factory) and _queued(one) < MOST_QUEUED]


@dataclass(frozen=True)
class Level:
    """The behaviour of a computer player at one difficulty."""

    thinks_every_loops: int
    workers: int
    barracks: int
    barracks_from_loop: int
    """The player builds no barracks before this loop."""
    attacks_with: int
    """The number of marines in the first attack; each later attack needs this many more."""
    attacks_from_loop: int
    workers_fight: bool
    """True if workers defend their town."""


VERY_HARD = Level(11, 22, 7, 0, 16, 4000, workers_fight=True)

LEVELS = {
    sc_pb.VeryEasy: Level(224, 13, 1, 5000, 6, 9000, workers_fight=False),
    sc_pb.Easy: Level(112, 14, 2, 3000, 8, 7000, workers_fight=True),
    sc_pb.Medium: Level(64, 16, 2, 1500, 8, 5500, workers_fight=True),
    sc_pb.MediumHard: Level(44, 16, 3, 0, 10, 5000, workers_fight=True),
    sc_pb.Hard: Level(32, 18, 4, 0, 12, 4500, workers_fight=True),
    sc_pb.Harder: Level(22, 20, 5, 0, 14, 4200, workers_fight=True),
}
"""The level of each difficulty; VeryHard and the cheating difficulties have VERY_HARD instead."""


MOST_QUEUED = 1
"""A structure that trains or queues this many units gets no further order to train."""
MOST_COMING = 2
"""The most barracks that are built at the same time."""


class Step(Enum):
    """One thing that a computer player does."""

    TRAIN_SCV = "train an SCV"
    TRAIN_MARINE = "train a marine"
    BUILD_DEPOT = "build a supply depot"
    BUILD_BARRACKS = "build a barracks"
    ATTACK = "send the idle marines to attack"


@dataclass(frozen=True)
class Holdings:
    """The possessions of a computer player."""

    loop: int
    minerals: int
    free_food: float
    workers: int
    depots: int
    depots_coming: int
    barracks: int
    barracks_coming: int
    idle_halls: int
    """The number of town halls with room in their queue."""
    idle_barracks: int
    idle_marines: int
    attacks: int
    """The number of attacks that the player has sent so far."""


def next_steps(have: Holdings, level: Level) -> list[Step]:
    """The steps to take now, the most important first; the player can pay for all of them."""
    steps: list[Step] = []
    minerals = have.minerals

    def afford(step: Step, cost: float) -> None:
        nonlocal minerals
        if minerals >= cost:
            minerals -= int(cost)
            steps.append(step)

    if have.idle_halls and have.workers < level.workers and have.free_food >= 1:
        afford(Step.TRAIN_SCV, SCV.minerals)
    margin = 2 + 2 * have.barracks
    if (have.free_food < margin or not have.depots) and not have.depots_coming:
        afford(Step.BUILD_DEPOT, DEPOT.minerals)
    wanted = level.barracks - have.barracks - have.barracks_coming
    if have.loop < level.barracks_from_loop:
        wanted = 0
    if have.depots and wanted > 0 and have.barracks_coming < MOST_COMING:
        afford(Step.BUILD_BARRACKS, BARRACKS.minerals)
    for _ in range(min(have.idle_barracks, int(have.free_food))):
        afford(Step.TRAIN_MARINE, MARINE.minerals)
    needed = level.attacks_with * (1 + have.attacks)
    if have.loop >= level.attacks_from_loop and have.idle_marines >= min(needed, 40):
        steps.append(Step.ATTACK)
    return steps
