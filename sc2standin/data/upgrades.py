"""Upgrades: the damage and armor that levels add, and other changes to numbers of unit types.

The numbers are those of the real game's patch 5.0.3. The numbers of stimpacks and of structures'
armor are in this file, all others in `upgrades.jsonc`. `scripts/truth.py check` compares all
numbers with the game's data.

A level adds damage to each hit of a weapon, or armor against each hit. After an upgrade that
changes other numbers, such as the speed, a player's units have another `UnitType` with the same id
(`variant`). The new type's `variant_of` is the original type.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.data.research import LEVELS, UPGRADES
from sc2standin.data.unit_types.kinds import MIN_HIT, STRUCTURE, UnitType

STIMPACK, STRUCTURE_ARMOR, PROTOSS_SHIELDS = (
    UPGRADES[name]["id"] for name in ("Stimpack", "TerranBuildingArmor", "ProtossShields")
)
STRUCTURE_ARMOR_POINTS = 2.0

Gain = tuple[float, float]
"""The numbers that a level adds to the damage and to the bonus against an attribute."""

_ATTACK_OF: dict[str, tuple[int, Gain]] = {
    name: (entry["id"], (damage, bonus))
    for entry in UPGRADES.values()
    for name, (damage, bonus) in entry.get("damage", {}).items()
}
"""For each unit type, the id of the first level of its weapons, and the gain of each level."""
_ATTACK_ON_AIR: dict[str, Gain] = {
    name: (damage, bonus)
    for entry in UPGRADES.values()
    for name, (damage, bonus) in entry.get("damage_on_air", {}).items()
}
"""The gain of a unit's weapon that hits only air units, if its other weapon's gain differs."""
_ARMOR_OF: dict[str, int] = {
    name: entry["id"] for entry in UPGRADES.values() for name in entry.get("armor_of", ())
}
"""For each unit type, the id of the first level of its armor."""


class Change(NamedTuple):
    """Additions to numbers of a unit type and of its first weapon."""

    life: float = 0.0
    armor: float = 0.0
    speed_per_s: float = 0.0
    acceleration: float = 0.0
    range: float = 0.0
    bonus: float = 0.0
    rate: float = 0.0
    """The relative increase of the weapon's rate of fire."""


_CHANGES = {
    entry["id"]: {name: Change(**change) for name, change in entry["changes"].items()}
    for entry in UPGRADES.values()
    if "changes" in entry
}
"""The changes of upgrades without levels, by the upgrade's id and the unit type's name."""


class Stimpack(NamedTuple):
    """The effect of a stimpack on a unit."""

    ability_id: int
    buff_id: int
    costs_life: float


STIMPACKS = {"Marine": Stimpack(380, 27, 10.0), "Marauder": Stimpack(253, 24, 20.0)}
STIMPACK_LOOPS = 240
"""The duration of a stimpack, in loops: 15 s at 16 loops a second."""
STIMPACK_FACTOR = 1.5
"""The factor by which a unit walks and fires faster with a stimpack."""


class Levels(NamedTuple):
    """The levels that the upgrades of one player give its units of one type."""

    attack: int
    armor: int
    shields: int
    armor_points: float
    """The armor that the upgrades add."""


def levels(kind: UnitType, done: frozenset[int]) -> Levels:
    """The levels of a unit type, if its player has these upgrades."""
    armor = _level(_ARMOR_OF.get(kind.name, 0), done)
    of_building = STRUCTURE in kind.attributes and kind.race == common.Terran
    more = STRUCTURE_ARMOR_POINTS if of_building and STRUCTURE_ARMOR in done else 0.0
    return Levels(
        attack=_level(_ATTACK_OF.get(kind.name, (0, (0.0, 0.0)))[0], done),
        armor=armor,
        shields=_level(PROTOSS_SHIELDS, done) if kind.race == common.Protoss else 0,
        armor_points=armor + more,
    )


def _level(first: int, done: frozenset[int]) -> int:
    return sum(first + level in done for level in range(LEVELS)) if first else 0


class Blows(NamedTuple):
    """The single hits (blows) of one attack, before armor is subtracted."""

    damage: float
    """The damage of each single hit."""
    times: int


@lru_cache(maxsize=4096)
def blows(attacker: UnitType, attack: int, target: UnitType) -> Blows:
    """The single hits of one attack; `attack` is the level of the attacker's weapons."""
    if attacker.weapon is None:
        return Blows(0.0, 0)
    weapon = attacker.weapon.against(target)
    _first, (damage, more_bonus) = _ATTACK_OF.get(attacker.name, (0, (0.0, 0.0)))
    if weapon.targets == data_pb.Weapon.Air:
        damage, more_bonus = _ATTACK_ON_AIR.get(attacker.name, (damage, more_bonus))
    bonus = 0.0
    if weapon.bonus and weapon.bonus[0] in target.attributes:
        bonus = weapon.bonus[1] + attack * more_bonus
    return Blows(weapon.damage + attack * damage + bonus, weapon.attacks)


@lru_cache(maxsize=4096)
def upgraded_hit(attacker: UnitType, attack: int, target: UnitType, armor_points: float) -> float:
    """The damage of one attack at the level `attack`, on a target with this additional armor."""
    damage, times = blows(attacker, attack, target)
    return max(MIN_HIT, damage - target.armor - armor_points) * times


def variant(kind: UnitType, done: frozenset[int], *, stimmed: bool = False) -> UnitType:
    """The variant of a unit type with these upgrades, and with a stimpack if `stimmed`."""
    plain = kind.variant_of or kind
    ids = tuple(id for id, changes in _CHANGES.items() if id in done and plain.name in changes)
    stim = stimmed and plain.name in STIMPACKS
    return _variant(plain, ids, stim) if ids or stim else plain


@lru_cache(maxsize=1024)  # cached, because each variant must be one object
def _variant(plain: UnitType, ids: tuple[int, ...], stimmed: bool) -> UnitType:
    kind, weapon = plain, plain.weapon
    for change in (_CHANGES[id][plain.name] for id in ids):
        kind = replace(
            kind,
            life=kind.life + change.life,
            armor=kind.armor + change.armor,
            speed_per_s=kind.speed_per_s + change.speed_per_s,
            acceleration=kind.acceleration + change.acceleration,
        )
        if weapon is not None:
            bonus = weapon.bonus and (weapon.bonus[0], weapon.bonus[1] + change.bonus)
            weapon = replace(
                weapon,
                range=weapon.range + change.range,
                cooldown_s=weapon.cooldown_s / (1 + change.rate),
                bonus=bonus,
            )
    buff_id = 0
    if stimmed:
        buff_id = STIMPACKS[plain.name].buff_id
        kind = replace(kind, speed_per_s=kind.speed_per_s * STIMPACK_FACTOR)
        if weapon is not None:
            weapon = replace(weapon, cooldown_s=weapon.cooldown_s / STIMPACK_FACTOR)
    return replace(kind, weapon=weapon, buff_id=buff_id, variant_of=plain)
