"""How far units see and attack, in cells.

SMAC gives every unit the same ranges, whatever its weapon; SMACv2 can give each type its own.
"""

from __future__ import annotations

from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import UnitType

SIGHT_RANGE, SHOOT_RANGE = 9.0, 6.0
"""SMAC's, for every unit."""


def sight_range(kind: UnitType, rules: Rules) -> float:
    """How far a unit sees."""
    return kind.sight if rules.use_unit_ranges else SIGHT_RANGE


def shoot_range(kind: UnitType, rules: Rules) -> float:
    """How far a unit attacks or heals, from centre to centre."""
    return max(kind.reach, rules.min_attack_range) if rules.use_unit_ranges else SHOOT_RANGE
