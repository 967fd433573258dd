"""The score and its details in the observation.

In a melee it counts the units and structures that a player has, had and destroyed, by category.
Recorded games begin with a score of 1050: 50 minerals, 600 for the workers, 400 for the command
centre. So the score is the sum of the money, of all units and structures that a player ever had,
and of those it destroyed. The last term, and the category of a structure, are our reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from s2clientprotocol import score_pb2 as score_pb

from sc2standin.data.research import RESEARCH_BY_ID
from sc2standin.data.unit_types import STRUCTURE, TYPE_BY_NAME, WORKERS, UnitType
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import Site
from sc2standin.simulation.world import Army, Ledger, World

_OF_LATER_BUILDS = ("current_apm", "current_effective_apm")
"""Fields that the reported build of the game does not have."""
_SUMS = attrgetter(*Ledger.__dataclass_fields__)


class ScoreView:
    """The score of one episode; filled again when it has changed."""

    def __init__(self, score: score_pb.Score, game: Game) -> None:
        self._score, self._world, self._player = score, game.world, game.viewer
        self._economy = game.economies.get(game.viewer)
        self._melee = game.scenario.melee is not None
        self._shown: object = None
        score.score_type = score_pb.Score.Melee if self._melee else score_pb.Score.Curriculum
        _set_to_zero(score.score_details)

    def update(self) -> None:
        """Show the current loop."""
        world = self._world
        economy = self._economy
        money = rates = None
        if economy is not None:
            rates = economy.earnings.rates(world.loop)
            self._show_idle(economy)
            money = (economy.earnings.collected, rates, economy.spent, economy.minerals)
        player = self._player
        army, ledger = world.army_of(player), world.ledger_of(player)
        upgrades = world.upgrades.count
        current = (world.score_of(player), army, money, _SUMS(ledger), upgrades)
        if current != self._shown:
            self._shown = current
            self._score.score = world.score_of(player)
            self._fill_details(army, ledger)
            if economy is not None and rates is not None:
                _fill_economy(self._score.score_details, army, economy, rates)
                if self._melee:
                    fill_melee(self._score, world, economy)

    def _show_idle(self, economy: Economy) -> None:
        """Show idle times, which change in every loop, in seconds of 16 loops."""
        details = self._score.score_details
        details.idle_worker_time = economy.idle_worker_loops / LOOPS_PER_DATA_S
        details.idle_production_time = economy.idle_production_loops / LOOPS_PER_DATA_S

    def _fill_details(self, army: Army, ledger: Ledger) -> None:
        details = self._score.score_details
        used_minerals = army.minerals + ledger.lost_minerals
        used_vespene = army.vespene + ledger.lost_vespene
        details.total_value_units = used_minerals + used_vespene
        details.killed_value_units = ledger.killed_value
        details.food_used.army = army.food
        details.killed_minerals.army = ledger.killed_minerals
        details.killed_vespene.army = ledger.killed_vespene
        details.lost_minerals.army = ledger.lost_minerals
        details.lost_vespene.army = ledger.lost_vespene
        details.used_minerals.army = army.minerals
        details.used_vespene.army = army.vespene
        details.total_used_minerals.army = used_minerals
        details.total_used_vespene.army = used_vespene
        details.total_damage_dealt.life = ledger.dealt_life
        details.total_damage_dealt.shields = ledger.dealt_shields
        details.total_damage_taken.life = ledger.taken_life
        details.total_damage_taken.shields = ledger.taken_shields
        details.total_healed.life = ledger.healed_life


def _fill_economy(
    details: score_pb.ScoreDetails, army: Army, economy: Economy, rates: tuple[float, float]
) -> None:
    """Set the fields of income and spending, and separate workers and structures from the army."""
    details.collected_minerals, details.collected_vespene = economy.earnings.collected
    details.collection_rate_minerals, details.collection_rate_vespene = rates
    details.spent_minerals, details.spent_vespene = economy.spent
    details.total_value_structures = army.structure_minerals
    details.total_value_units -= army.structure_minerals
    details.food_used.economy = army.workers
    details.food_used.army = army.food - army.workers


def _set_to_zero(details: score_pb.ScoreDetails) -> None:
    """Set every field, as the game does."""
    for field in details.DESCRIPTOR.fields:
        if field.name in _OF_LATER_BUILDS:
            continue
        if field.message_type is None:
            setattr(details, field.name, 0.0)
        else:
            part = getattr(details, field.name)
            for number in field.message_type.fields:
                setattr(part, number.name, 0.0)


CATEGORIES = ("army", "economy", "technology")
_ECONOMY = {
    *WORKERS,
    *(TYPE_BY_NAME[name] for name in ("Refinery", "SupplyDepot", "SupplyDepotLowered")),
    *(kind for name, kind in TYPE_BY_NAME.items() if "Command" in name),
    TYPE_BY_NAME["PlanetaryFortress"],
}


def category(kind: UnitType) -> str:
    """The category of a unit type in the score."""
    if kind in _ECONOMY:
        return "economy"
    return "technology" if STRUCTURE in kind.attributes else "army"


def fill_melee(score: score_pb.Score, world: World, economy: Economy) -> None:
    """Set the fields that a melee counts by category, and the total score."""
    details, ledger = score.score_details, world.ledger_of(economy.owner)
    have = Counter(
        unit.type for unit in world.owned_by(economy.owner) if not isinstance(unit.job, Site)
    )
    ever = have + ledger.lost
    _fill(details.used_minerals, details.used_vespene, have)
    _fill(details.total_used_minerals, details.total_used_vespene, ever)
    _fill(details.lost_minerals, details.lost_vespene, ledger.lost)
    _fill(details.killed_minerals, details.killed_vespene, ledger.killed)
    for of_minerals, of_vespene in (
        (details.used_minerals, details.used_vespene),
        (details.total_used_minerals, details.total_used_vespene),
    ):
        of_minerals.upgrade, of_vespene.upgrade = _paid(world.upgrades.of(economy.owner))
    details.total_value_units, details.total_value_structures = _values(ever)
    details.killed_value_units, details.killed_value_structures = _values(ledger.killed)
    score.score = int(
        economy.minerals
        + economy.vespene
        + details.total_value_units
        + details.total_value_structures
        + details.killed_value_units
        + details.killed_value_structures
    )


def _fill(
    minerals: score_pb.CategoryScoreDetails,
    vespene: score_pb.CategoryScoreDetails,
    kinds: Counter[UnitType],
) -> None:
    for name in CATEGORIES:
        of_it = [(kind, count) for kind, count in kinds.items() if category(kind) == name]
        setattr(minerals, name, float(sum(kind.minerals * count for kind, count in of_it)))
        setattr(vespene, name, float(sum(kind.vespene * count for kind, count in of_it)))


def _paid(upgrades: list[int]) -> tuple[float, float]:
    """The cost of upgrades in minerals and gas."""
    costs = [RESEARCH_BY_ID[id].cost for id in upgrades]
    return float(sum(cost[0] for cost in costs)), float(sum(cost[1] for cost in costs))


def _values(kinds: Counter[UnitType]) -> tuple[float, float]:
    """The cost of units, and of structures."""
    return (
        _value(kinds, (kind for kind in kinds if STRUCTURE not in kind.attributes)),
        _value(kinds, (kind for kind in kinds if STRUCTURE in kind.attributes)),
    )


def _value(counts: Counter[UnitType], kinds: Iterable[UnitType]) -> float:
    return float(sum((kind.minerals + kind.vespene) * counts[kind] for kind in kinds))
