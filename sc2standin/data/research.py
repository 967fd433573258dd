"""What structures research: which one, by which ability, and what has to be there first.

Ids and requirements are those of patch 5.0.3, as python-sc2's tables and the game's own abilities
name them. Costs and times are those of the game's upgrade table (`tables`), which is read when the
first of them is asked for.

Rule it keeps: the levels of an upgrade are researched one after the other, and share a general id.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.tables import kept


@dataclass(frozen=True, eq=False)  # there is one object of each
class Research:
    """One upgrade that structures research; an order names it as it names a unit to train."""

    id: int
    """Id of the upgrade."""
    build_ability_id: int
    by: tuple[str, ...]
    """Names of the structures that research it."""
    general_id: int = 0
    """The ability that all levels of it share, 0 if it has no levels."""
    needs: tuple[str, ...] = ()
    """Names of the structures of which one has to stand."""
    after: int = 0
    """Id of the upgrade that has to be done before, 0 for none."""

    food = 0.0

    @cached_property
    def cost(self) -> tuple[int, int]:
        """Minerals and gas that are paid for it."""
        row = _rows()[self.id]
        return row.mineral_cost, row.vespene_cost

    @cached_property
    def build_time_loops(self) -> float:
        """How long it takes, in loops."""
        return float(_rows()[self.id].research_time)


@lru_cache(maxsize=1)
def _rows() -> dict[int, data_pb.UpgradeData]:
    return {row.upgrade_id: row for row in kept().upgrades}


_ARMORY, _COUNCIL, _BEACON = ("Armory",), ("TwilightCouncil",), ("FleetBeacon",)
_LAIR, _HIVE = ("Lair", "Hive"), ("Hive",)
_HALLS = ("Hatchery", "Lair", "Hive")

_LEVELS = (
    (("EngineeringBay",), 652, 3698, 7, _ARMORY, _ARMORY),
    (("EngineeringBay",), 656, 3697, 11, _ARMORY, _ARMORY),
    (("Armory",), 855, 3701, 30, (), ()),
    (("Armory",), 861, 3699, 36, (), ()),
    (("Armory",), 864, 3700, 116, (), ()),
    (("Forge",), 1062, 3695, 39, _COUNCIL, _COUNCIL),
    (("Forge",), 1065, 3694, 42, _COUNCIL, _COUNCIL),
    (("Forge",), 1068, 3696, 45, _COUNCIL, _COUNCIL),
    (("CyberneticsCore",), 1562, 3693, 78, _BEACON, _BEACON),
    (("CyberneticsCore",), 1565, 3692, 81, _BEACON, _BEACON),
    (("EvolutionChamber",), 1186, 3705, 53, _LAIR, _HIVE),
    (("EvolutionChamber",), 1192, 3706, 59, _LAIR, _HIVE),
    (("EvolutionChamber",), 1189, 3704, 56, _LAIR, _HIVE),
    (("Spire", "GreaterSpire"), 1312, 3703, 68, _LAIR, _HIVE),
    (("Spire", "GreaterSpire"), 1315, 3702, 71, _LAIR, _HIVE),
)
"""Three levels each: structures, first ability, general ability, first upgrade, and what levels 2
and 3 need."""

_SINGLE: tuple[tuple[tuple[str, ...], int, int, tuple[str, ...]], ...] = (
    (("EngineeringBay",), 650, 5, ()),
    (("EngineeringBay",), 651, 6, ()),
    (("BarracksTechLab",), 730, 15, ()),
    (("BarracksTechLab",), 731, 16, ()),
    (("BarracksTechLab",), 732, 17, ()),
    (("FactoryTechLab",), 761, 19, ()),
    (("FactoryTechLab",), 764, 122, _ARMORY),
    (("FactoryTechLab",), 766, 289, _ARMORY),
    (("FactoryTechLab",), 769, 144, ()),
    (("StarportTechLab",), 790, 20, ()),
    (("StarportTechLab",), 793, 22, ()),
    (("StarportTechLab",), 799, 136, ()),
    (("GhostAcademy",), 820, 25, ()),
    (("GhostAcademy",), 822, 297, ()),
    (("FusionCore",), 1532, 76, ()),
    (("FusionCore",), 1533, 140, ()),
    (("FusionCore",), 1534, 139, ()),
    (("CyberneticsCore",), 1568, 84, ()),
    (("TwilightCouncil",), 1592, 86, ()),
    (("TwilightCouncil",), 1593, 87, ()),
    (("TwilightCouncil",), 1594, 130, ()),
    (("RoboticsBay",), 1093, 48, ()),
    (("RoboticsBay",), 1094, 49, ()),
    (("RoboticsBay",), 1097, 50, ()),
    (("FleetBeacon",), 46, 99, ()),
    (("FleetBeacon",), 48, 288, ()),
    (("FleetBeacon",), 49, 296, ()),
    (("TemplarArchive",), 1126, 52, ()),
    (("DarkShrine",), 2720, 141, ()),
    (_HALLS, 1223, 62, ()),
    (_HALLS, 1225, 64, ()),
    (("SpawningPool",), 1252, 65, _HIVE),
    (("SpawningPool",), 1253, 66, ()),
    (("BanelingNest",), 1482, 75, _LAIR),
    (("RoachWarren",), 216, 2, _LAIR),
    (("RoachWarren",), 217, 3, _LAIR),
    (("HydraliskDen",), 1282, 134, ()),
    (("HydraliskDen",), 1283, 135, ()),
    (("LurkerDenMP",), 3709, 293, _HIVE),
    (("LurkerDenMP",), 3710, 127, _HIVE),
    (("InfestationPit",), 1455, 101, ()),
    (("InfestationPit",), 1457, 298, ()),
    (("UltraliskCavern",), 263, 88, ()),
    (("UltraliskCavern",), 265, 4, ()),
)
"""Structures, ability, upgrade, and what it needs."""

RESEARCH: tuple[Research, ...] = (
    *(
        Research(
            *(first + level, ability_id + level, by, general_id),
            needs=((), second, third)[level],
            after=first + level - 1 if level else 0,
        )
        for by, ability_id, general_id, first, second, third in _LEVELS
        for level in range(3)
    ),
    *(Research(id, ability_id, by, needs=needs) for by, ability_id, id, needs in _SINGLE),
)
RESEARCH_BY_ID = {one.id: one for one in RESEARCH}
RESEARCH_BY_ABILITY = {one.build_ability_id: one for one in RESEARCH}
RESEARCH_OF: dict[str, tuple[Research, ...]] = {
    name: tuple(one for one in RESEARCH if name in one.by)
    for name in dict.fromkeys(name for one in RESEARCH for name in one.by)
}
"""What each structure researches, by its name."""
