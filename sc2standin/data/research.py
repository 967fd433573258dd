"""Research: the structures, abilities and requirements of each upgrade.

`upgrades.jsonc` has the ids and requirements of upgrades. Costs and times are those of the game's
upgrade table (`tables`), which is read when a cost or time is first needed.

The levels of an upgrade are researched one after the other, and share a general id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.jsonc import Entry, read
from sc2standin.data.tables import kept


@dataclass(frozen=True, eq=False)  # compared by identity, because each upgrade has one object
class Research:
    """One upgrade that structures research, or one level of an upgrade; see `Order.makes`."""

    id: int
    """The id of the upgrade."""
    build_ability_id: int
    by: tuple[str, ...]
    """The names of the structures that research the upgrade."""
    general_id: int = 0
    """The id of the ability that all levels of the upgrade share; 0 if it has no levels."""
    needs: tuple[str, ...] = ()
    """The names of the structures of which the player needs one; empty if none is needed."""
    after: int = 0
    """The id of the upgrade that must be finished before this one, 0 for none."""
    alert: sc_pb.Alert.ValueType = sc_pb.ResearchComplete
    """The alert when the research is finished."""

    food = 0.0

    @cached_property
    def cost(self) -> tuple[int, int]:
        """The cost in minerals and gas."""
        row = _rows()[self.id]
        return row.mineral_cost, row.vespene_cost

    @cached_property
    def build_time_loops(self) -> float:
        """The duration of the research, in loops."""
        return float(_rows()[self.id].research_time)


@lru_cache(maxsize=1)
def _rows() -> dict[int, data_pb.UpgradeData]:
    return {row.upgrade_id: row for row in kept().upgrades}


LEVELS = 3
UPGRADES: dict[str, Entry] = dict(read(Path(__file__).with_name("upgrades.jsonc"), {"by": tuple}))
"""The entries of the data file. A key is an upgrade's name without its level."""


def _researched(entry: Entry) -> Iterator[Research]:
    """The upgrade that an entry describes, or the upgrade's levels."""
    id, ability_id, by = entry["id"], entry["build_ability_id"], entry["by"]
    if "general_id" not in entry:
        alert = sc_pb.Alert.Value(entry.get("alert", "ResearchComplete"))
        yield Research(id, ability_id, by, needs=tuple(entry.get("needs", ())), alert=alert)
        return
    for level, needs in enumerate(entry.get("needs", [()] * LEVELS)):
        yield Research(
            id + level,
            ability_id + level,
            by,
            entry["general_id"],
            needs=tuple(needs),
            after=id + level - 1 if level else 0,
            alert=sc_pb.UpgradeComplete,
        )


RESEARCH = tuple(one for entry in UPGRADES.values() for one in _researched(entry))
RESEARCH_BY_ID = {one.id: one for one in RESEARCH}
RESEARCH_BY_ABILITY = {one.build_ability_id: one for one in RESEARCH}
RESEARCH_OF: dict[str, tuple[Research, ...]] = {
    name: tuple(one for one in RESEARCH if name in one.by)
    for name in dict.fromkeys(name for one in RESEARCH for name in one.by)
}
"""The research of each structure, by the structure's name."""
