"""The fog of war: the cells and units that a player sees, has seen, and remembers.

Buildings, scenery and creep stay where they are, so the player remembers each of them at the place
where it was last seen. As in the real game, the player knows neutral buildings and scenery from the
start. Only an episode with fog has a `Sight`.

A `Sight` scans the map every SCAN_INTERVAL_LOOPS loops, whatever the sizes of steps. A `Sight` also
scans before an observation that falls between two regular scans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sc2standin.data.unit_types.kinds import STRUCTURE, UnitType
from sc2standin.simulation.terrain import Cells, Terrain
from sc2standin.simulation.units import NEUTRAL, Unit
from sc2standin.simulation.world import World

SCAN_INTERVAL_LOOPS = 8
"""The number of loops between two scans; in this time a unit walks about one cell."""

SNAPSHOT_TAG = (1 << 32) + 2
"""A snapshot's tag is its unit's tag plus this number; the tags differ in the real game, too."""


@dataclass(frozen=True)
class Snapshot:
    """A unit as the player saw it last; the unit itself may be dead or elsewhere now."""

    unit: Unit
    kind: UnitType
    """The type that the player saw; a structure may have another type by now."""
    x: float
    y: float


class Sight:
    """The fog of one player in one episode."""

    def __init__(self, world: World, terrain: Terrain, player: int) -> None:
        self._world, self._terrain, self._player = world, terrain, player
        self._scanned_at = (-1, -1)
        """The loop of the last scan, and the value of `population_version` in that loop."""
        self.next_look = SCAN_INTERVAL_LOOPS
        """The loop at which a scan is due."""
        self.lit: Cells = np.zeros((terrain.height, terrain.width), dtype=np.bool_)
        """True for the cells in sight, indexed (y, x)."""
        self.explored = self.lit.copy()
        """True for the cells that the player has ever seen."""
        self.is_lifted = False
        """True while the player sees the whole map, by debug command."""
        self.creep: Cells | None = None
        """The cells on which the player sees or remembers creep; None if there are none."""
        self.in_sight: list[Unit] = []
        """The units that the player sees, its own among them, in the order of creation."""
        self._remembered = {
            unit.tag: Snapshot(unit, unit.type, unit.x, unit.y)
            for unit in world.units
            if unit.owner == NEUTRAL and _stays(unit)
        }

    @property
    def snapshots(self) -> list[Snapshot]:
        """The units that the player remembers and does not see."""
        return [one for one in self._remembered.values() if not self._is_lit(one)]

    def sees(self, x: float, y: float) -> bool:
        """True if the player sees a point."""
        self.scan()
        return self._is_lit_at(x, y)

    def knows(self, unit: Unit) -> bool:
        """True if the player sees a unit, or may remember it."""
        return unit.owner == self._player or _stays(unit) or self.sees(unit.x, unit.y)

    def scan(self) -> None:
        """Update what the player sees and remembers to this loop."""
        world = self._world
        self.next_look = world.loop - world.loop % SCAN_INTERVAL_LOOPS + SCAN_INTERVAL_LOOPS
        now = world.loop, world.population_version
        if self._scanned_at == now:
            return
        self._scanned_at = now
        mine = self._player
        eyes = [(unit.x, unit.y, unit.type.sight) for unit in world.owned_by(mine)]
        eyes += [(scan.x, scan.y, scan.radius) for scan in world.scans if scan.owner == mine]
        self.lit = np.ones_like(self.lit) if self.is_lifted else self._terrain.seen_from(eyes)
        self.explored |= self.lit
        if world.creep is not None or self.creep is not None:
            self.creep = self._known_creep(world.creep)
        self.in_sight = [unit for unit in world.units if unit.owner == mine or self._is_lit(unit)]
        for tag in [tag for tag, one in self._remembered.items() if self._is_lit(one)]:
            del self._remembered[tag]
        for unit in self.in_sight:
            if unit.owner != mine and _stays(unit):
                self._remembered[unit.tag] = Snapshot(unit, unit.type, unit.x, unit.y)

    def _known_creep(self, creep: Cells | None) -> Cells | None:
        """The creep that the player sees in this loop, or remembers."""
        known = np.zeros_like(self.lit) if self.creep is None else self.creep & ~self.lit
        if creep is not None:
            known |= creep & self.lit
        return known if known.any() else None

    def _is_lit(self, one: Unit | Snapshot) -> bool:
        return self._is_lit_at(one.x, one.y)

    def _is_lit_at(self, x: float, y: float) -> bool:
        height, width = self.lit.shape
        return bool(self.lit[min(int(y), height - 1), min(int(x), width - 1)])


def _stays(unit: Unit) -> bool:
    """True for scenery, and for buildings that have not lifted off."""
    kind = unit.type
    return kind.invulnerable or (STRUCTURE in kind.attributes and not kind.flies)
