"""Units that change their type: zerglings morph; siege tanks, vikings, hellions change modes.

A zergling that becomes a baneling is first a cocoon, which does nothing. Rules it keeps: the
baneling is paid for when the cocoon is made, and needs a baneling nest unless the client has lifted
this rule.

Rules of modes: while it changes its mode a unit stands, does not fire, and obeys no order; its
orders follow afterwards. A viking that lands over a cliff or a structure comes down beside it. A
unit keeps its share of life.
"""

from __future__ import annotations

from collections.abc import Callable

from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.unit_types import MODES, TYPE_BY_NAME
from sc2standin.simulation import orders
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.units import STOPPED, Errand, Site, Unit
from sc2standin.simulation.world import World

BANELING = TYPE_BY_NAME["Baneling"]
COST = (25, 25)
"""The extra cost of a baneling over its zergling."""


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
        """The loop at which each cocoon opens, and its tag."""

    def allows(self) -> error_pb.ActionResult.ValueType:
        """Success if a zergling can become a cocoon, apart from the money; else the reason."""
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
    """The changes of mode in one episode."""

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
