"""Money and supply of the client, and what each loop does to them.

Rule it keeps: what a map does not list under `makes` cannot be made on it.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.economy import EconomyRules
from sc2pool.standin.data.scenario import Created, Income, Rule
from sc2pool.standin.data.unit_types import COMMAND_CENTER, SCV, TYPE_BY_ID, UnitType
from sc2pool.standin.simulation import orders
from sc2pool.standin.simulation.economy.building import Building
from sc2pool.standin.simulation.economy.jobs import Deposit, Errand, Factory, Site
from sc2pool.standin.simulation.economy.mining import (
    MINERALS_LEFT,
    VESPENE_LEFT,
    Mining,
)
from sc2pool.standin.simulation.economy.production import Production
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import ME, MOST_FOOD, Order, Unit, World


class Economy:
    """The client's money and supply in one episode.

    Attributes:
        vespene: the gas that can be spent; the minerals are `World.minerals`.
        collected, spent: minerals and gas brought home and paid in this episode.
    """

    def __init__(
        self, rules: EconomyRules, scored: tuple[Rule, ...], world: World, terrain: Terrain
    ) -> None:
        self._rules, self._world = rules, world
        self._income_score = sum(rule.score for rule in scored if isinstance(rule, Income))
        self._created_score = {
            rule.type: rule.score for rule in scored if isinstance(rule, Created)
        }
        world.minerals, self.vespene = rules.minerals, rules.vespene
        self.collected = self.spent = (0, 0)
        self.building = Building(world, terrain, self.pay)
        self.production = Production(world, terrain, self._created)
        self._mining = Mining(world, self._earn)
        self._begin = {
            OrderKind.GATHER: self._mining.gather,
            OrderKind.RETURN: self._mining.bring_home,
            OrderKind.BUILD: self.building.set_out,
        }
        for unit in world.units:
            self._employ(unit)

    def _employ(self, unit: Unit) -> None:
        """Give a unit that is on the map from the start its job."""
        kind = unit.type
        if kind.has_minerals or kind.has_vespene:
            unit.job = Deposit(MINERALS_LEFT if kind.has_minerals else VESPENE_LEFT)
        elif kind is COMMAND_CENTER:
            unit.job = Factory()

    def start(self) -> None:
        """Send the workers to the field that the map names, if it names one."""
        fields = [
            unit.tag
            for unit in self._world.units
            if unit.type.has_minerals and (unit.x, unit.y) == self._rules.mined_from_start
        ]
        for tag in fields:
            gather = Order(OrderKind.GATHER, 0.0, 0.0, tag)
            for unit in self._world.owned_by(ME):
                if isinstance(unit.job, Factory):
                    unit.job.rally = [gather]
                elif unit.type is SCV:
                    orders.give(self._world, unit, gather, queued=False)

    def apply(self) -> int:
        """Play one loop; returns the next one, as a rule of a map does."""
        world = self._world
        loop = world.loop
        for worker in tuple(world.workers):
            job = worker.job
            if not isinstance(job, Errand):
                self._begin[worker.order.kind](worker)
            elif loop >= job.until:
                worker.x += job.vx
                worker.y += job.vy
                job.then(worker)
            else:
                worker.x += job.vx
                worker.y += job.vy
        self.production.advance(world.structures, self.free_food)
        self.building.grow()
        return loop + 1

    @property
    def food_cap(self) -> int:
        """Supply provided."""
        return min(MOST_FOOD, int(self._world.army.food_provided))

    @property
    def food_used(self) -> float:
        """Supply of the units that live and of those in production."""
        return self._world.army.food + self.production.food_begun()

    def free_food(self) -> float:
        """Supply for more units."""
        return self.food_cap - self.food_used

    def allows(self, kind: UnitType) -> error_pb.ActionResult.ValueType:
        """Success if a unit of this type can be begun now, or why not."""
        if kind not in self._rules.makes:
            return error_pb.NotSupported
        needed = TYPE_BY_ID.get(kind.tech_requirement_id)
        if needed is not None and not any(
            unit.type is needed and not isinstance(unit.job, Site)
            for unit in self._world.structures
        ):
            return error_pb.TechRequirementsNotMet
        if self._world.minerals < kind.minerals:
            return error_pb.NotEnoughMinerals
        if self.vespene < kind.vespene:
            return error_pb.NotEnoughVespene
        if kind.food and self.free_food() < kind.food:
            return error_pb.NotEnoughFood
        return error_pb.Success

    def pay(self, kind: UnitType) -> error_pb.ActionResult.ValueType:
        """Take the cost of a unit, if it can be begun now."""
        result = self.allows(kind)
        if result == error_pb.Success:
            self._world.minerals -= kind.minerals
            self.vespene -= kind.vespene
            self.spent = (self.spent[0] + kind.minerals, self.spent[1] + kind.vespene)
        return result

    def train(self, factory: Unit, order: Order) -> error_pb.ActionResult.ValueType:
        """Pay for a unit and order it; Success, or why not."""
        if order.makes is None or not self.production.has_place(factory):
            return error_pb.QueueIsFull
        result = self.pay(order.makes)
        if result == error_pb.Success:
            self.production.order(factory, order)
        return result

    def _earn(self, minerals: int, vespene: int) -> None:
        self._world.minerals += minerals
        self.vespene += vespene
        self.collected = (self.collected[0] + minerals, self.collected[1] + vespene)
        self._world.score += self._income_score * (minerals + vespene)

    def _created(self, kind: UnitType) -> None:
        self._world.score += self._created_score.get(kind, 0)
