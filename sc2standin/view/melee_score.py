"""The score of a melee: what a player has, had and destroyed, by category.

Recorded games begin with a score of 1050: 50 minerals, 600 for the workers, 400 for the command
centre. So the score is the sum of money, of all units and structures a player ever had, and of
those it destroyed; the last term, and the category of a structure, are our reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from s2clientprotocol import score_pb2 as score_pb

from sc2standin.data.research import RESEARCH_BY_ID
from sc2standin.data.unit_types import STRUCTURE, TYPE_BY_NAME, WORKERS, UnitType
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.units import Site
from sc2standin.simulation.world import World

CATEGORIES = ("army", "economy", "technology")
_ECONOMY = {
    *WORKERS,
    *(TYPE_BY_NAME[name] for name in ("Refinery", "SupplyDepot", "SupplyDepotLowered")),
    *(kind for name, kind in TYPE_BY_NAME.items() if "Command" in name),
    TYPE_BY_NAME["PlanetaryFortress"],
}


def category(kind: UnitType) -> str:
    """The purpose of a unit."""
    if kind in _ECONOMY:
        return "economy"
    return "technology" if STRUCTURE in kind.attributes else "army"


def fill_melee(score: score_pb.Score, world: World, economy: Economy) -> None:
    """Set the fields that a melee counts by category, and the score itself."""
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
    """The minerals and the gas that upgrades cost."""
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
