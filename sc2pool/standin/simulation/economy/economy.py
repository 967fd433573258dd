"""Money and supply of a player, and what each loop does to them.

Rule it keeps: what a map does not list under `makes` cannot be made on it.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.economy import EconomyRules
from sc2pool.standin.data.scenario import Created, Income, Rule
from sc2pool.standin.data.unit_types import SCV, STRUCTURE, TYPE_BY_ID, UnitType
from sc2pool.standin.simulation import orders
from sc2pool.standin.simulation.economy.building import Building, is_geyser
from sc2pool.standin.simulation.economy.jobs import Deposit, Errand, Factory, Site
from sc2pool.standin.simulation.economy.mining import MINERALS_LEFT, VESPENE_LEFT, Mining
from sc2pool.standin.simulation.economy.production import Production
from sc2pool.standin.simulation.economy.walking import Walking
from sc2pool.standin.simulation.paths.routes import Routes
from sc2pool.standin.simulation.rules.towns import fields_near
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import ME, MOST_FOOD, Order, Point, Unit, World


class Economy:
    """A player's money and supply in one episode.

    Attributes:
        minerals, vespene: what can be spent; the client's minerals are `World.minerals`.
        town: where the player of a melee begins.
        collected, spent: minerals and gas brought home and paid in this episode.
    """

    def __init__(
        self,
        rules: EconomyRules,
        scored: tuple[Rule, ...],
        world: World,
        terrain: Terrain,
        routes: Routes,
        *,
        owner: int,
    ) -> None:
        self._rules, self._world, self.owner = rules, world, owner
        self.town: Point | None = None
        self._income_score = sum(rule.score for rule in scored if isinstance(rule, Income))
        self._created_score = {
            rule.type: rule.score for rule in scored if isinstance(rule, Created)
        }
        self._minerals = 0
        self.minerals, self.vespene = rules.minerals, rules.vespene
        self.collected = self.spent = (0, 0)
        walking = Walking(world, routes)
        self.building = Building(world, terrain, walking, self.pay, self.refund, owner=owner)
        self.production = Production(world, terrain, routes, owner, self._created)
        self._mining = Mining(world, walking, self._earn)
        self._begin = {
            OrderKind.GATHER: self._mining.gather,
            OrderKind.RETURN: self._mining.bring_home,
            OrderKind.BUILD: self.building.set_out,
        }
        for unit in world.units:
            self.employ(unit)

    def employ(self, unit: Unit) -> None:
        """Give a structure or resource that was put on the map, and not built, its job."""
        kind = unit.type
        if unit.job is not None:
            return
        if kind.invulnerable and (kind.has_minerals or kind.has_vespene):
            unit.job = Deposit(MINERALS_LEFT if kind.has_minerals else VESPENE_LEFT)
        elif unit.owner == self.owner and kind.has_vespene:
            under = [one for one in self._world.units if is_geyser(one, unit.x, unit.y)]
            unit.job = under[0].job if under else Deposit(VESPENE_LEFT)
        elif unit.owner == self.owner and STRUCTURE in kind.attributes:
            unit.job = Factory()

    @property
    def minerals(self) -> int:
        """The minerals that can be spent."""
        return self._world.minerals if self.owner == ME else self._minerals

    @minerals.setter
    def minerals(self, amount: int) -> None:
        if self.owner == ME:
            self._world.minerals = amount
        else:
            self._minerals = amount

    def start(self) -> None:
        """Send the workers to the field that the map names, or to the nearest of a melee's town."""
        fields = [
            unit
            for unit in self._world.units
            if unit.type.has_minerals and (unit.x, unit.y) == self._rules.mined_from_start
        ]
        if self.town is not None:
            fields = fields_near(self._world, self.town)
        for field in fields[:1]:
            self._send_to(field.tag)

    def _send_to(self, field_tag: int) -> None:
        """Let all workers gather at a field, and new ones too."""
        gather = Order(OrderKind.GATHER, 0.0, 0.0, field_tag)
        for unit in self._world.owned_by(self.owner):
            if isinstance(unit.job, Factory):
                unit.job.rally = [gather]
            elif unit.type is SCV:
                orders.give(self._world, unit, gather, queued=False)
                unit.workplace = field_tag

    def apply(self) -> int:
        """Play one loop; returns the next one, as a rule of a map does."""
        world = self._world
        loop = world.loop
        for worker in tuple(world.workers):
            if worker.owner != self.owner:
                continue
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
        self.production.advance(self.free_food)
        self.building.grow()
        return loop + 1

    @property
    def food_cap(self) -> int:
        """Supply provided."""
        return min(MOST_FOOD, int(self._world.armies[self.owner].food_provided))

    @property
    def food_used(self) -> float:
        """Supply of the units that live and of those in production."""
        return self._world.armies[self.owner].food + self.production.food_begun()

    def free_food(self) -> float:
        """Supply for more units."""
        return self.food_cap - self.food_used

    def allows(self, kind: UnitType) -> error_pb.ActionResult.ValueType:
        """Success if a unit of this type can be begun now, or why not."""
        if kind not in self._rules.makes:
            return error_pb.NotSupported
        needed = TYPE_BY_ID.get(kind.tech_requirement_id)
        if needed is not None and not any(
            (unit.type is needed or unit.type.tech_alias_id == needed.id)
            and not isinstance(unit.job, Site)
            for unit in self._world.structures[self.owner]
        ):
            return error_pb.TechRequirementsNotMet
        if self.minerals < kind.minerals:
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
            self.minerals -= kind.minerals
            self.vespene -= kind.vespene
            self.spent = (self.spent[0] + kind.minerals, self.spent[1] + kind.vespene)
        return result

    def refund(self, minerals: int, vespene: int) -> None:
        """Give back what was paid for something that is cancelled."""
        self.minerals += minerals
        self.vespene += vespene
        self.spent = (self.spent[0] - minerals, self.spent[1] - vespene)

    def train(self, factory: Unit, order: Order) -> error_pb.ActionResult.ValueType:
        """Pay for a unit and order it; Success, or why not."""
        if order.makes is None or not self.production.has_place(factory):
            return error_pb.QueueIsFull
        result = self.pay(order.makes)
        if result == error_pb.Success:
            self.production.order(factory, order)
        return result

    def _earn(self, minerals: int, vespene: int) -> None:
        self.minerals += minerals
        self.vespene += vespene
        self.collected = (self.collected[0] + minerals, self.collected[1] + vespene)
        if self.owner == ME:
            self._world.score += self._income_score * (minerals + vespene)

    def _created(self, kind: UnitType) -> None:
        if self.owner == ME:
            self._world.score += self._created_score.get(kind, 0)
