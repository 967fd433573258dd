"""All units of one episode, and the events since the last observation.

Rules of this file:
* Units stay in the order of creation.
* Only this file creates and removes units, so that all lists of living units stay correct.
* Code that makes a plan of movement invalid calls `orders_changed`. Code that also changes the
  loops in which rules have effects calls `disturb`.

`Upgrades` keeps the upgrades of all players, and knows the unit types that upgrades have changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.files import MULE, WARP_GATE
from sc2standin.data.unit_types.kinds import STRUCTURE, UnitType
from sc2standin.data.upgrades import Levels, levels, variant
from sc2standin.simulation.terrain import Cells
from sc2standin.simulation.units import (
    ENEMY,
    ME,
    PLAYERS,
    Site,
    Unit,
    way_to,
)

_FIRST_TAG = (1 << 32) + (1 << 18) + 1
_TAG_STEP = 1 << 18

DOWN = 1.5 * math.pi
"""The facing of a new unit."""

ATTACK_ALERT_LOOPS, ATTACK_ALERT_CELLS, MOST_ATTACK_ALERTS = 240, 15.0, 2
"""The limits of the alerts about attacks, from `Attack` in the game's data.

For 240 loops (15 s) after an alert, an attack on a target within 15 cells of the first target gives
no alert. In any 240 loops at most two alerts are given on the whole map.
"""

MOST_FOOD = 200
"""The game's limit of supply."""


class Scan(NamedTuple):
    """A circle in which a player sees all units, even cloaked ones, for a limited time."""

    owner: int
    x: float
    y: float
    radius: float
    until: int


class Effect(NamedTuple):
    """A spell's effect on the ground."""

    id: int
    owner: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Army:
    """The totals of a player's units."""

    count: int = 0
    minerals: float = 0.0
    vespene: float = 0.0
    food: float = 0.0
    food_provided: float = 0.0
    structure_minerals: float = 0.0
    sites: int = 0
    """The number of structures that are not finished."""
    workers: int = 0
    soldiers: int = 0
    warp_gates: int = 0


@dataclass
class Losses:
    """The sums of one side's losses and healing, which the score details report."""

    life: float = 0.0
    shields: float = 0.0
    """Life and shields are the damage that the side's units have taken."""
    healed_life: float = 0.0
    minerals: float = 0.0
    vespene: float = 0.0
    """Minerals and gas are the cost of the units that the side has lost."""
    units: Counter[UnitType] = field(default_factory=Counter)


class News:
    """Deaths and alerts since the last observation.

    Attributes:
        dead_tags: tags of the units that died.
        alerts: the players that were alerted, each with its alert.
    """

    def __init__(self) -> None:
        self.dead_tags: list[int] = []
        self.alerts: list[tuple[int, sc_pb.Alert.ValueType]] = []
        self._attacks: dict[tuple[int, bool], list[tuple[int, Unit]]] = {}
        """Loop and target of recent attack alerts. The keys are (owner, True for structures)."""

    def clear(self) -> None:
        """Forget all deaths and alerts, because an observation has shown them."""
        self.dead_tags.clear()
        self.alerts.clear()

    def alert(self, owner: int, alert: sc_pb.Alert.ValueType) -> None:
        """Alert a player."""
        self.alerts.append((owner, alert))

    def alert_of_attack(self, target: Unit, loop: int) -> None:
        """Alert the owner of a unit that was hit, within the limits of attack alerts."""
        is_structure = STRUCTURE in target.type.attributes
        recent = self._attacks.setdefault((target.owner, is_structure), [])
        while recent and recent[0][0] <= loop - ATTACK_ALERT_LOOPS:
            del recent[0]
        if len(recent) < MOST_ATTACK_ALERTS and all(
            way_to(target, one.x, one.y)[2] > ATTACK_ALERT_CELLS for _loop, one in recent
        ):
            recent.append((loop, target))
            alerted = sc_pb.BuildingUnderAttack if is_structure else sc_pb.UnitUnderAttack
            self.alert(target.owner, alerted)


class World:
    """The units, the loop, and the events since the last observation.

    Args:
        seed: the seed of `chance`.
        clients: the players that clients play; computers play the others.
    """

    def __init__(self, seed: int = 0, clients: frozenset[int] = frozenset({ME})) -> None:
        self.clients = clients
        self.loop = 0
        self.chance = Random(seed)
        """Random numbers for events within a loop; drawing one number is faster than with numpy."""
        self.scores = dict.fromkeys(PLAYERS, 0)
        self.minerals = 0
        self.losses = {player: Losses() for player in PLAYERS}
        self.news = News()

        self.units: list[Unit] = []
        self.by_tag: dict[int, Unit] = {}
        self.walkers: list[Unit] = []
        """The units that can walk or fire, and do no work, in the order of creation."""
        self.workers: list[Unit] = []
        """The units that gather, build, repair or change their mode."""
        self.structures: dict[int, list[Unit]] = {owner: [] for owner in PLAYERS}
        """The structures of each player."""
        self.recovering: list[Unit] = []
        """The units whose shields, life or energy regenerate."""
        self.cloaked: list[Unit] = []
        """The cloaked units, which enemies see only if they detect them."""
        self.scans: list[Scan] = []
        """The scans of orbital commands that are not over yet."""
        self.casting = False
        """True while a unit has an order to cast."""
        self.effects: list[Effect] = []
        """The effects of spells on the ground now."""
        self.creep: Cells | None = None
        """True for cells with creep, indexed (y, x), or None; never change this array in place."""
        self.cheats: set[tuple[int, debug_pb.DebugGameState.ValueType]] = set()
        """The states that debug commands have set, each with its player.

        With `god` the player's units take no damage. With `control_enemy` the player commands all
        units. The remaining states switch off rules of the player's economy.
        """
        self.upgrades = Upgrades()
        self.armies = dict.fromkeys(PLAYERS, Army())
        """The totals of each player's units."""

        self.reaction_loops = 0
        """Longest time that a unit needs to aim at a target that it chooses by itself."""
        self.doomed: list[int] = []
        """Tags of the units that die at the end of this loop."""
        self.population_version = 0
        """A number that changes when units are created, die or are moved."""
        self.plan_until = 0
        """The last loop for which the plan of movement is valid."""
        self.rules_at = 0
        """The first loop in which a rule can have an effect."""
        self._next_tag = _FIRST_TAG

    def owned_by(self, owner: int) -> list[Unit]:
        """The units of one owner, in the order of creation."""
        return [unit for unit in self.units if unit.owner == owner]

    def idle_workers(self, owner: int) -> int:
        """The number of an owner's workers without an order."""
        return sum(
            one.type.is_counted_worker and one.owner == owner and one.order.kind == OrderKind.IDLE
            for one in self.walkers
        )

    def heal(self, unit: Unit, life: float) -> None:
        """Give a unit life, and add the gain to the healing of its owner's side."""
        unit.life += life
        self.losses_of(unit.owner).healed_life += life

    def losses_of(self, owner: int) -> Losses:
        """The sums of an owner's side; all owners but player 1 count as player 2's side."""
        return self.losses[ME if owner == ME else ENEMY]

    def orders_changed(self) -> None:
        """Make the plan of movement invalid, because an order changed."""
        self.plan_until = self.loop

    def disturb(self) -> None:
        """Make the plan and rules' next loops invalid after units are created, removed or moved."""
        self.orders_changed()
        self.rules_at = self.loop

    def spawn(self, kind: UnitType, owner: int, points: Iterable[Sequence[float]]) -> list[Unit]:
        """Create one unit at each of the points."""
        before = len(self.units)
        kind = self.upgrades.kind_for(owner, kind)
        for x, y in points:
            unit = Unit(
                self._next_tag,
                kind,
                owner,
                float(x),
                float(y),
                DOWN,
                kind.life,
                kind.shields,
                kind.energy_at_start,
            )
            unit.unseen = kind.cloaked
            self._next_tag += _TAG_STEP
            self.units.append(unit)
        self._population_changed()
        return self.units[before:]

    def put(self, units: list[Unit], points: Iterable[Sequence[float]]) -> None:
        """Move units to other places. For units that can walk, call `disturb` afterwards."""
        for unit, (x, y) in zip(units, points, strict=True):
            unit.x, unit.y = x, y
        self.population_version += 1

    def become(self, unit: Unit, kind: UnitType, *, stimmed: bool = False) -> None:
        """Change a unit's type, or begin or end its stimpack."""
        unit.type = self.upgrades.kind_for(unit.owner, kind, stimmed=stimmed)
        self._population_changed()

    def upgrade(self, owner: int, upgrade_id: int) -> None:
        """Give a player and its units an upgrade."""
        self.upgrades.add(owner, upgrade_id)
        for unit in self.owned_by(owner):
            kind = self.upgrades.kind_for(owner, unit.type, stimmed=unit.type.buff_id != 0)
            unit.life += kind.life - unit.type.life
            unit.type = kind
        self._population_changed()

    def bury(self, dead: list[Unit]) -> None:
        """Remove units and record their deaths."""
        for unit in dead:
            self.news.dead_tags.append(unit.tag)
            losses = self.losses.get(unit.owner)
            if losses is not None:
                losses.units[unit.type] += 1
                losses.minerals += unit.type.minerals
                losses.vespene += unit.type.vespene
        self.remove(dead)

    def remove(self, units: list[Unit]) -> None:
        """Remove units from the map, without recording deaths."""
        gone = {unit.tag for unit in units}
        self.units = [unit for unit in self.units if unit.tag not in gone]
        self._population_changed()

    def _population_changed(self) -> None:
        self.by_tag = {unit.tag: unit for unit in self.units}
        self.recovering = [unit for unit in self.units if unit.type.recovers]
        self.cloaked = [unit for unit in self.units if unit.type.cloaked]
        self.count_units()
        self.sort_walkers()
        self.disturb()

    def sort_walkers(self) -> None:
        """Sort units into walkers and workers after a unit was created, or began or ended work."""
        self.population_version += 1
        mobile = [unit for unit in self.units if unit.type.mobile]
        self.workers = [unit for unit in mobile if unit.order.kind >= OrderKind.GATHER]
        self.walkers = [
            unit
            for unit in self.units
            if not isinstance(unit.job, Site)
            and (
                unit.order.kind < OrderKind.GATHER
                if unit.type.mobile
                else unit.type.weapon is not None
            )
        ]

    def count_units(self) -> None:
        """Count the players' units again, after a creation, a death, or the end of construction."""
        self.armies = {owner: self._count(owner) for owner in PLAYERS}

    def _count(self, owner: int) -> Army:
        units = self.owned_by(owner)
        structures = [unit for unit in units if STRUCTURE in unit.type.attributes]
        self.structures[owner] = structures
        sites = [unit.type for unit in structures if isinstance(unit.job, Site)]
        types = [unit.type for unit in units]
        provided = sum(kind.food_provided for kind in types)
        workers = sum(kind.is_counted_worker for kind in types)
        return Army(
            count=len(types),
            minerals=float(sum(kind.minerals for kind in types)),
            vespene=float(sum(kind.vespene for kind in types)),
            food=float(sum(kind.food for kind in types)),
            food_provided=float(provided - sum(kind.food_provided for kind in sites)),
            structure_minerals=float(sum(unit.type.minerals for unit in structures)),
            sites=len(sites),
            workers=workers,
            soldiers=len(types) - len(structures) - workers - types.count(MULE),
            warp_gates=sum(unit.type is WARP_GATE for unit in structures),
        )


class Upgrades:
    """The finished research of all players.

    Attributes:
        count: the number of upgrades of all players.
    """

    def __init__(self) -> None:
        self.count = 0
        self._done: dict[int, list[int]] = {}
        self._levels: dict[tuple[int, UnitType], Levels] = {}

    def of(self, owner: int) -> list[int]:
        """The ids of a player's upgrades, in the order in which they were finished."""
        return self._done.get(owner, [])

    def add(self, owner: int, upgrade_id: int) -> None:
        """Give a player an upgrade."""
        self._done.setdefault(owner, []).append(upgrade_id)
        self.count += 1
        self._levels.clear()

    def kind_for(self, owner: int, kind: UnitType, *, stimmed: bool = False) -> UnitType:
        """The variant of a type with the player's upgrades, and with a stimpack if `stimmed`."""
        if not self.count and not stimmed:
            return kind.variant_of or kind
        return variant(kind, frozenset(self.of(owner)), stimmed=stimmed)

    def levels_of(self, owner: int, kind: UnitType) -> Levels:
        """The levels of the weapons and armor of a player's units of a type."""
        found = self._levels.get((owner, kind))
        if found is None:
            found = self._levels[owner, kind] = levels(kind, frozenset(self.of(owner)))
        return found
