"""The economy of a map file: the money at the start, and what can be made."""

from __future__ import annotations

from dataclasses import dataclass

from sc2standin.data.unit_types import TYPE_BY_NAME, UnitType
from sc2standin.map_reader.fields import Fields, Point

MAX_MONEY = 1_000_000
CARRIES_MINERALS, CARRIES_VESPENE = 271, 273
"""Ids of the buffs of a worker with cargo."""


@dataclass(frozen=True)
class EconomyRules:
    """One map's economy."""

    minerals: int
    vespene: int
    makes: tuple[UnitType, ...]
    """The units that can be trained and built; all others cannot."""
    mined_from_start: Point | None
    """The mineral field at which workers gather from the first loop on, and new ones rally."""


def read_economy(fields: Fields) -> EconomyRules:
    """The economy that a map file describes."""
    rules = EconomyRules(
        minerals=int(fields.number("minerals", MAX_MONEY)),
        vespene=int(fields.number("vespene", MAX_MONEY)),
        makes=fields.several_of("makes", TYPE_BY_NAME),
        mined_from_start=fields.point_or_none("mined_from_start"),
    )
    fields.finish()
    return rules
