"""The unit types that no map has: they are made from the game's tables when a client asks for one.

Such a unit walks, flies, sees, fights with the weapon of its table row, and costs and needs what
the row says; its body has the rest (`unit_types.files`). Rule: types without a body (missiles,
bridges, units of campaigns) do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.abilities import TRAINED_BY_ABILITY
from sc2standin.data.tables import kept
from sc2standin.data.unit_types import TYPE_BY_ID, TYPE_BY_NAME
from sc2standin.data.unit_types.files import BODIES
from sc2standin.data.unit_types.kinds import UnitType, WeaponType

_ORDER = (data_pb.Weapon.Any, data_pb.Weapon.Ground, data_pb.Weapon.Air)
"""Which of two weapons comes first."""
LIFE_PER_S = 0.2734
"""Life that comes back to a Zerg unit."""


def type_of(type_id: int) -> UnitType | None:
    """The unit type with this id, or None if no debug command can create it."""
    return TYPE_BY_ID.get(type_id) or _derived().get(type_id)


def type_named(name: str) -> UnitType | None:
    """The unit type with this name in the tables, or None if there is none here."""
    known = TYPE_BY_NAME.get(name)
    return known or next((one for one in _derived().values() if one.name == name), None)


@cache
def hallucination_of(kind: UnitType) -> UnitType:
    """A unit type that looks like this one, and neither fights, costs nor detects."""
    return replace(
        kind, hallucination=True, weapon=None, minerals=0, vespene=0, food=0.0, detection=0.0
    )


def trained_by(ability_id: int) -> UnitType | None:
    """The unit type that an ability of a Protoss or Zerg structure trains; None for all others."""
    name = TRAINED_BY_ABILITY.get(ability_id)
    return None if name is None else type_named(name)


@lru_cache(maxsize=1)
def _derived() -> dict[int, UnitType]:
    rows = (row for row in kept().units if row.unit_id not in TYPE_BY_ID)
    return {
        row.unit_id: replace(_as_in(row), **BODIES[row.name]) for row in rows if row.name in BODIES
    }


def _as_in(row: data_pb.UnitTypeData) -> UnitType:
    """The tables' row of a type."""
    return UnitType(
        id=row.unit_id,
        name=row.name,
        race=row.race,
        armor=row.armor,
        speed_per_s=row.movement_speed,
        sight=row.sight_range,
        weapon=_weapon(row.weapons),
        attributes=tuple(row.attributes),
        minerals=row.mineral_cost,
        vespene=row.vespene_cost,
        food=row.food_required,
        food_provided=row.food_provided,
        cargo_size=row.cargo_size,
        build_time_loops=row.build_time,
        build_ability_id=row.ability_id,
        tech_requirement_id=row.tech_requirement,
        tech_alias_id=row.tech_alias[0] if row.tech_alias else 0,
        life_per_s=LIFE_PER_S if row.race == common.Zerg else 0.0,
    )


def _weapon(weapons: Iterable[data_pb.Weapon]) -> WeaponType | None:
    ordered = sorted(weapons, key=lambda one: _ORDER.index(one.type))
    if not ordered:
        return None
    weapon, *others = ordered
    bonus = weapon.damage_bonus[0] if weapon.damage_bonus else None
    return WeaponType(
        damage=weapon.damage,
        range=weapon.range,
        cooldown_s=weapon.speed,
        attacks=weapon.attacks,
        targets=weapon.type,
        bonus=None if bonus is None else (bonus.attribute, bonus.bonus),
        other=_weapon(others),
    )
