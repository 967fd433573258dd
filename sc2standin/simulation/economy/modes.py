"""Units that change their mode: siege tanks, vikings, hellions.

Rules it keeps: meanwhile a unit stands, does not fire, and obeys nothing; what it is ordered to do
it does afterwards. A viking that lands over a cliff or a structure comes down beside it. The share
of its life that a unit has stays the same.
"""

from __future__ import annotations

from sc2standin.data.unit_types import MODES
from sc2standin.simulation import orders
from sc2standin.simulation.paths.routes import Routes
from sc2standin.simulation.units import Errand, Unit
from sc2standin.simulation.world import World


class Modes:
    """The changes of mode in one episode."""

    def __init__(self, world: World, routes: Routes) -> None:
        self._world, self._routes = world, routes

    def begin(self, unit: Unit) -> None:
        """Begin the change that a unit is ordered to make."""
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
