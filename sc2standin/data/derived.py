"""Unit types that are made from others, or by them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sc2standin.data.abilities import TRAINED_BY_ABILITY
from sc2standin.data.unit_types import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType


@cache
def hallucination_of(kind: UnitType) -> UnitType:
    """A unit type that looks like this one, and neither fights, costs nor detects."""
    return replace(
        kind, hallucination=True, weapon=None, minerals=0, vespene=0, food=0.0, detection=0.0
    )


def trained_by(ability_id: int) -> UnitType | None:
    """The unit type that an ability of a Protoss or Zerg structure trains; None for all others."""
    name = TRAINED_BY_ABILITY.get(ability_id)
    return None if name is None else TYPE_BY_NAME[name]
