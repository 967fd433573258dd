"""Money and supply of a player, and their changes in each loop; units that change their type.

Only unit types that a map lists under `makes` can be made on the map. Research, and units that
structures of Protoss and Zerg train, need not be listed. A client may switch off rules of the
economy by debug command (`World.cheats`).

`Earnings` is a player's income, in total and per minute. The incomes per minute equal those of real
replays to the digit. An income per minute is the income of the last 240 loops, converted to a
minute of 960 loops, and multiplied by 1.4 (rounded to 4096ths, as in the game).

`Morphs`: a zergling that becomes a baneling is first a cocoon, which does nothing. The player needs
a baneling nest or a debug command, and pays when the cocoon is made.

`Modes`: a siege tank, viking or hellion that changes its mode stands still and does not fire. The
unit obeys no order, not even a stop, during the change; it carries out queued orders afterwards. A
viking that lands over a cliff or a structure comes down beside it. A unit keeps the same share of
its full life through the change.

`Stimpacks`: a marine or marauder loses some life, and walks and fires faster for a while. If the
unit takes a second stimpack, the time of the effect starts again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache

from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import (
    KIND_BY_ABILITY,
    TRAINED_BY_ABILITY,
    OrderKind,
    available_to,
)
from sc2standin.data.research import Research
from sc2standin.data.unit_types.files import MODES, SCV, TYPE_BY_ID, TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import STRUCTURE, UnitType
from sc2standin.data.upgrades import STIMPACK_LOOPS, STIMPACKS
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.map_reader.scenario import Created, EconomyRules, Income, Rule
from sc2standin.simulation import orders
from sc2standin.simulation.economy.structures import (
    QUEUED,
    AddOns,
    Flight,
    Laboratory,
    Orbital,
    Production,
    add_on_place,
)
from sc2standin.simulation.economy.workers.building import REFUND, Building, Repair, is_geyser
from sc2standin.simulation.economy.workers.mining import (
    MINERALS_LEFT,
    VESPENE_LEFT,
    Mining,
    Walking,
)
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.rules import fields_near
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import (
    ME,
    STOPPED,
    Deposit,
    Errand,
    Factory,
    Order,
    Point,
    Site,
    Unit,
)
from sc2standin.simulation.world import MOST_FOOD, World

FAST_LOOPS = 16
"""The most loops that making a product takes after the client has asked for fast building."""


class Economy:
    """A player's money and supply in one episode.

    Attributes:
        minerals, vespene: minerals and gas to spend; player 1's minerals are `World.minerals`.
        town: the starting place of a player in a melee, otherwise None.
        earnings: the income of the player.
        spent: the minerals and gas paid in this episode.
        idle_worker_loops: loops in which a worker had no order, as a sum over all workers.
        idle_production_loops: loops in which a finished structure that can train units made
            nothing, as a sum over all such structures.
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
        self.earnings, self.spent = Earnings(), (0, 0)
        self.idle_worker_loops = self.idle_production_loops = 0
        walking = Walking(world, routes)
        self.building = Building(
            world, terrain, walking, self.pay, self.refund, owner=owner, loops_for=self._loops_for
        )
        self.production = Production(
            world, terrain, routes, self._done, owner=owner, loops_for=self._loops_for
        )
        self.laboratory = Laboratory(world, owner)
        self.morphs = Morphs(world, owner, self._spend, self._loops_for)
        self.stimpacks = Stimpacks(world)
        self.orbital = Orbital(world, routes, owner)
        self._add_ons = AddOns(world, walking, owner, self._loops_for, self._give_up)
        self._flight = Flight(world, self.building, walking, owner)
        self._mining = Mining(world, walking, self._earn)
        self._repair = Repair(world, walking, self._spend)
        self._begin = {
            OrderKind.GATHER: self._mining.gather,
            OrderKind.RETURN: self._mining.bring_home,
            OrderKind.REPAIR: self._repair.set_out,
            OrderKind.BUILD: self.building.set_out,
            OrderKind.CHANGE_MODE: Modes(world, routes).begin,
        }
        for unit in world.units:
            self.employ(unit)

    def employ(self, unit: Unit) -> None:
        """Give a job to a structure or resource that has none because no worker has built it."""
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
        """Send the workers to the field that the map names, or in a melee to the nearest one."""
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
        """Let all workers gather at a field, even those that structures train later."""
        gather = Order(OrderKind.GATHER, 0.0, 0.0, field_tag)
        for unit in self._world.owned_by(self.owner):
            if isinstance(unit.job, Factory):
                unit.job.rally = [gather]
            elif unit.type is SCV:
                orders.give(self._world, unit, gather, queued=False)
                unit.workplace = field_tag

    def apply(self) -> int:
        """Play one loop; returns the loop of the economy's next effect: always the next loop."""
        world = self._world
        loop = world.loop
        for worker in tuple(world.workers):
            if worker.owner != self.owner:
                continue
            job = worker.job
            if not isinstance(job, Errand):
                self._begin[worker.order.kind](worker)
                continue
            worker.x += job.vx
            worker.y += job.vy
            if loop >= job.until:
                job.then(worker)
        self.production.advance(self.free_food)
        self.building.grow()
        self._add_ons.advance()
        self._flight.advance()
        self.orbital.advance()
        self.morphs.advance()
        self.stimpacks.advance()
        if self.owner in world.clients:
            self._count_idle()
        return loop + 1

    def _count_idle(self) -> None:
        """Count this loop for each idle worker and each idle structure."""
        self.idle_worker_loops += self._world.idle_workers(self.owner)
        self.idle_production_loops += sum(
            unit.order.makes is None and isinstance(unit.job, Factory) and _trains(unit.type)
            for unit in self._world.structures[self.owner]
        )

    @property
    def food_cap(self) -> int:
        """Supply provided."""
        return min(MOST_FOOD, int(self._world.armies[self.owner].food_provided))

    @property
    def food_used(self) -> float:
        """Supply of the living units and of the units in production."""
        return self._world.armies[self.owner].food + self.production.food_begun()

    def lifts(self, rule: debug_pb.DebugGameState.ValueType) -> bool:
        """True if the client has lifted this rule."""
        return (self.owner, rule) in self._world.cheats

    def free_food(self) -> float:
        """The supply that is left for more units."""
        if self.lifts(debug_pb.food):
            return float(MOST_FOOD)
        return self.food_cap - self.food_used

    def allows(self, kind: UnitType | Research) -> error_pb.ActionResult.ValueType:
        """Success if this unit or research can be begun now; otherwise the reason for a refusal."""
        any_tech = self.lifts(debug_pb.tech_tree)
        if isinstance(kind, Research):
            possible = self.laboratory.allows(kind, any_tech=any_tech)
        elif kind not in self._rules.makes and kind.build_ability_id not in TRAINED_BY_ABILITY:
            return error_pb.NotSupported
        else:
            possible = any_tech or self.has_tech_for(kind)
        if not possible:
            return error_pb.TechRequirementsNotMet
        minerals, vespene = (0, 0) if self.lifts(debug_pb.free) else kind.cost
        if self.minerals < minerals:
            return error_pb.NotEnoughMinerals
        if self.vespene < vespene:
            return error_pb.NotEnoughVespene
        if kind.food and self.free_food() < kind.food:
            return error_pb.NotEnoughFood
        return error_pb.Success

    def has_tech_for(self, kind: UnitType) -> bool:
        """True if the player has the finished structure that a type requires."""
        needed = TYPE_BY_ID.get(kind.tech_requirement_id)
        return needed is None or any(
            (unit.type is needed or unit.type.tech_alias_id == needed.id)
            and not isinstance(unit.job, Site)
            for unit in self._world.structures[self.owner]
        )

    def _loops_for(self, kind: UnitType | Research) -> int:
        """The number of loops that making a unit or finishing research takes."""
        loops = int(kind.build_time_loops)
        return min(loops, FAST_LOOPS) if self.lifts(debug_pb.fast_build) else loops

    def pay(self, kind: UnitType | Research) -> error_pb.ActionResult.ValueType:
        """Pay for a unit or research; returns Success, or the reason why it cannot be begun."""
        result = self.allows(kind)
        if result == error_pb.Success:
            self._spend(*kind.cost)
        return result

    def _spend(self, minerals: int, vespene: int) -> bool:
        """Take minerals and gas; if the player has too little, take nothing and return False."""
        if self.lifts(debug_pb.free):
            return True
        if self.minerals < minerals or self.vespene < vespene:
            return False
        self.minerals -= minerals
        self.vespene -= vespene
        self.spent = (self.spent[0] + minerals, self.spent[1] + vespene)
        return True

    def refund(self, minerals: int, vespene: int) -> None:
        """Refund the cost of a cancelled order."""
        if self.lifts(debug_pb.free):
            return
        self.minerals += minerals
        self.vespene += vespene
        self.spent = (self.spent[0] - minerals, self.spent[1] - vespene)

    def make(self, factory: Unit, order: Order) -> error_pb.ActionResult.ValueType:
        """Let a structure make a product, and pay for it; returns Success or the refusal."""
        if order.makes is None or not self.production.has_place(factory):
            return error_pb.QueueIsFull
        alone = order.kind not in QUEUED or factory.order.kind not in QUEUED
        if alone and factory.order.makes is not None:
            return error_pb.CantQueueThatOrder
        made = order.makes
        if order.kind == OrderKind.ADD_ON and isinstance(made, UnitType):
            place = add_on_place(factory.x, factory.y)
            result = self.building.can_place(made, *place)
            if result != error_pb.Success:
                return result
        result = self.pay(made)
        if result == error_pb.Success:
            self.production.order(factory, order)
            if order.kind == OrderKind.ADD_ON and isinstance(made, UnitType):
                self._add_ons.begin(factory, made)
        return result

    def cancel(self, factory: Unit, place: int) -> bool:
        """Cancel the order at this place of a structure's queue; False if that is impossible."""
        order = self.production.cancel(factory, place)
        if order is None or order.makes is None:
            return False
        minerals, vespene = order.makes.cost
        if order.kind == OrderKind.ADD_ON:
            self._add_ons.cancel(factory)
            minerals, vespene = int(minerals * REFUND), int(vespene * REFUND)
        self.refund(minerals, vespene)
        return True

    def cancel_site(self, site: Unit) -> None:
        """Cancel a structure or an add-on under construction."""
        owner = self._add_ons.owner_of(site)
        if owner is None:
            self.refund(*self.building.cancel(site))
        elif owner.order.kind == OrderKind.ADD_ON:
            # If the structure has another order, the add-on is already cancelled.
            self.cancel(owner, 0)

    def _give_up(self, factory: Unit) -> None:
        """Cancel all orders of a structure's queue."""
        while self.cancel(factory, 0):
            pass

    def _done(self, factory: Unit, order: Order) -> None:
        """Finish a structure's order to make a product or to become another structure."""
        kind = order.makes
        if kind is not None and order.kind != OrderKind.LIFT:
            self._world.news.alert(self.owner, _alert_of(kind, order.kind))
        if isinstance(kind, Research):
            self._world.upgrade(self.owner, kind.id)
        elif order.kind == OrderKind.TRAIN:
            if self.owner == ME and kind is not None:
                self._world.scores[ME] += self._created_score.get(kind, 0)
        elif order.kind == OrderKind.ADD_ON:
            self._add_ons.finish(factory)
        elif kind is not None:
            if not factory.type.energy:
                factory.energy = kind.energy_at_start
            self._world.become(factory, kind)

    def _earn(self, minerals: int, vespene: int) -> None:
        self.minerals += minerals
        self.vespene += vespene
        self.earnings.add(self._world.loop, minerals, vespene)
        if self.owner == ME:
            self._world.scores[ME] += self._income_score * (minerals + vespene)


def _alert_of(made: UnitType | Research, kind: OrderKind) -> sc_pb.Alert.ValueType:
    """The alert for a finished order of this kind."""
    if isinstance(made, Research):
        return made.alert
    if kind == OrderKind.ADD_ON:
        return sc_pb.AddOnComplete
    if kind == OrderKind.UPGRADE:
        return sc_pb.UpgradeComplete
    if made.name == "Mothership":
        return sc_pb.MothershipComplete
    return sc_pb.TrainWorkerComplete if made.is_counted_worker else sc_pb.TrainUnitComplete


@cache
def _trains(kind: UnitType) -> bool:
    """True for a structure that trains units."""
    return any(KIND_BY_ABILITY.get(one) == OrderKind.TRAIN for one in available_to(kind))


WINDOW_LOOPS = 240
"""The rates count the income of the last WINDOW_LOOPS loops; in a younger game, of all loops."""
_FASTER = 5734 / 4096
_LOOPS_PER_MINUTE = LOOPS_PER_DATA_S * 60


class Earnings:
    """The income of one player in one episode.

    Attributes:
        collected: minerals and gas in total.
    """

    def __init__(self) -> None:
        self.collected = (0, 0)
        self._lately: deque[tuple[int, int, int]] = deque()
        """Loop, minerals and gas of each recent delivery."""

    def add(self, loop: int, minerals: int, vespene: int) -> None:
        """Record the delivery of a worker in this loop."""
        self.collected = (self.collected[0] + minerals, self.collected[1] + vespene)
        while self._lately and self._lately[0][0] <= loop - WINDOW_LOOPS:
            self._lately.popleft()
        self._lately.append((loop, minerals, vespene))

    def rates(self, loop: int) -> tuple[float, float]:
        """The income in minerals and gas per minute that the game shows in this loop."""
        if not self._lately:
            return 0.0, 0.0
        window_loops = min(max(loop, 1), WINDOW_LOOPS)
        lately = [one for one in self._lately if one[0] > loop - WINDOW_LOOPS]
        minerals, vespene = (sum(one[kind] for one in lately) for kind in (1, 2))
        a_minute = _LOOPS_PER_MINUTE / window_loops * _FASTER
        return minerals * a_minute, vespene * a_minute


BANELING = TYPE_BY_NAME["Baneling"]
COST = (25, 25)
"""The cost of turning a zergling into a baneling, in minerals and gas."""


class Morphs:
    """The cocoons of a player in one episode."""

    def __init__(
        self,
        world: World,
        owner: int,
        spend: Callable[[int, int], bool],
        loops_for: Callable[..., int],
    ) -> None:
        self._world, self._owner = world, owner
        self._spend, self._loops_for = spend, loops_for
        self._cocoons: list[tuple[int, int]] = []
        """The loop at which each cocoon opens, and the cocoon's tag."""

    def allows(self) -> error_pb.ActionResult.ValueType:
        """Success if a zergling can become a cocoon, whatever it costs; else the reason why not."""
        nests = (
            unit.type.name == "BanelingNest" and not isinstance(unit.job, Site)
            for unit in self._world.structures[self._owner]
        )
        any_tech = (self._owner, debug_pb.tech_tree) in self._world.cheats
        return error_pb.Success if any_tech or any(nests) else error_pb.TechRequirementsNotMet

    def begin(self, unit: Unit) -> error_pb.ActionResult.ValueType:
        """Turn a zergling into a cocoon; returns Success or the reason for a refusal."""
        result = self.allows()
        cocoon = TYPE_BY_NAME["BanelingCocoon"]
        if result != error_pb.Success:
            return result
        if not self._spend(*COST):
            return error_pb.NotEnoughMinerals
        unit.queue.clear()
        unit.order = STOPPED
        self._world.become(unit, cocoon)
        self._cocoons.append((self._world.loop + self._loops_for(BANELING), unit.tag))
        return error_pb.Success

    def advance(self) -> None:
        """Open the cocoons whose time has come."""
        world = self._world
        while self._cocoons and self._cocoons[0][0] <= world.loop:
            _due, tag = self._cocoons.pop(0)
            unit = world.by_tag.get(tag)
            if unit is not None:
                orders.finish(world, unit)
                unit.life = BANELING.life
                world.become(unit, BANELING)
                world.news.alert(self._owner, sc_pb.MorphComplete)


class Modes:
    """Changes the modes of units, in one episode."""

    def __init__(self, world: World, routes: Routes) -> None:
        self._world, self._routes = world, routes

    def begin(self, unit: Unit) -> None:
        """Begin the change of mode that a unit is ordered to make."""
        mode = MODES.get(unit.type.name)
        if mode is None:
            orders.finish(self._world, unit)
        else:
            unit.job = Errand(self._world.loop + mode.loops, self._end, bound=True)

    def _end(self, unit: Unit) -> None:
        into = MODES[unit.type.name].into
        if unit.type.flies and not into.flies:
            self._routes.update()
            unit.x, unit.y = self._routes.blocks.free_point(unit.x, unit.y)
        whole = unit.type.life
        self._world.become(unit, into)
        unit.life *= unit.type.life / whole
        orders.finish(self._world, unit)


class Stimpacks:
    """The stimpacks that a player's units have taken, in one episode."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._until: dict[Unit, int] = {}

    def use(self, unit: Unit) -> bool:
        """Let a unit take a stimpack; returns False if the unit has too little life."""
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
    """True if a unit has more life than a stimpack takes."""
    return unit.life > STIMPACKS[unit.type.name].costs_life
