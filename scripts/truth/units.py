"""Reads the stand-in's facts of unit types from the game's catalogs and data tables.

Fields come from the API's data tables, because clients see these tables, or from the catalogs if
the tables lack the field. The game computes in 4096ths, so decimals are rounded to 4096ths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import data_pb2 as data_pb

from truth.catalog import GameData, Node

Facts = dict[str, Any]
BODY = {
    "life": "LifeMax",
    "life_per_s": "LifeRegenRate",
    "life_delay_s": "LifeRegenDelay",
    "shields": "ShieldsMax",
    "armor": "LifeArmor",
    "energy_at_start": "EnergyStart",
    "energy": "EnergyMax",
    "speed_per_s": "Speed",
    "sight": "Sight",
    "cargo_size": "CargoSize",
}
"""For fields that hold a number: a dict from the stand-in's names to the catalogs' names."""
OF_TABLES = {
    "armor": "armor",
    "speed_per_s": "movement_speed",
    "sight": "sight_range",
    "minerals": "mineral_cost",
    "vespene": "vespene_cost",
    "food": "food_required",
    "food_provided": "food_provided",
    "cargo_size": "cargo_size",
    "build_time_loops": "build_time",
    "build_ability_id": "ability_id",
    "tech_requirement_id": "tech_requirement",
}
"""A dict from the stand-in's names of fields to the names in the data tables."""
AT_ONCE = 1000.0
"""A unit with at least this acceleration is at full speed immediately."""
QUICK_TURN = 719.0
"""A unit with at least this turning rate, in degrees a second, turns around within four loops."""
ATTRIBUTES = [value.name for value in data_pb.Attribute.DESCRIPTOR.values]
USUAL: Facts = {
    "attacks": 1,
    "targets": "Ground",
    "delay_s": [-0.0625, 0.125],
    "damage_point_s": 0.166992188,
    "backswing_s": 0.5,
    "range_slop": 1,
    "missile_speed_per_s": 0,
}
"""The default values of a weapon's fields; the files leave these values out."""
OF_CATALOGS = ("delay_s", "damage_point_s", "backswing_s", "range_slop", "missile_speed_per_s")
"""The fields of a weapon that the data tables lack."""
FOLLOWED = ("ImpactEffect", "InitialEffect", "EffectArray", "CaseDefault", "FinalEffect")
"""The fields of an effect that name the next effect in the effect's chain."""
ALSO = ("PeriodicEffectArray", "CaseArray")
"""The fields of an effect that name alternative or repeated effects."""


def rounded(value: float) -> float:
    """The value as the game computes with it (in 4096ths), with at most nine decimals."""
    exact = round(value * 4096) / 4096
    return int(exact) if exact == int(exact) else round(exact, 9)


def from_catalogs(game: GameData, name: str) -> Facts:
    """The facts that the catalogs have about a unit type.

    Raises:
        KeyError: The catalogs have no unit type of this name.
    """
    unit = game["Unit"][name]
    facts: Facts = {ours: rounded(unit.number(theirs)) for ours, theirs in BODY.items()}
    facts["radius"], facts["footprint"] = _ground(game, unit)
    apart = rounded(unit.number("SeparationRadius"))
    facts["separation"] = apart if facts["speed_per_s"] and apart != facts["radius"] else 0
    facts["attributes"] = [one for one in ATTRIBUTES if one in unit.flags("Attributes")]
    facts["minerals"] = int(unit.number("CostResource", "Minerals"))
    facts["vespene"] = int(unit.number("CostResource", "Vespene"))
    food = rounded(unit.number("Food"))
    facts["food"], facts["food_provided"] = max(0, -food), max(0, food)
    facts["flies"] = unit.flags("PlaneArray") == ["Air"]
    facts["strides"] = unit.text("Mover") == "Colossus"
    turning = unit.number("TurningRate")
    facts["turn_per_s"] = rounded(turning) if facts["speed_per_s"] and turning < QUICK_TURN else 0
    acceleration = unit.number("Acceleration")
    facts["acceleration"] = rounded(acceleration) if acceleration < AT_ONCE else 0
    facts["detection"] = max(_detected_at(game, unit), default=0)
    facts["weapon"] = in_order(weapons(game, unit))
    return facts


def _ground(game: GameData, unit: Node) -> tuple[float, list[float]]:
    """The radius that the API shows, and half the width and half the height of a unit's cells.

    A structure has the radius of its footprint's outline, if the outline is larger.
    """
    radius, name = unit.number("Radius"), unit.text("Footprint")
    if name not in game["Footprint"]:
        return rounded(radius), []
    footprint = game["Footprint"][name]
    outline = math.ceil(footprint.at("Shape").number("Radius") * 16) / 16
    area = footprint.text("Layers", "Place", "Area") or "-1,-1,1,1"
    left, bottom, right, top = map(int, area.split(","))
    cells = [rounded((right - left) / 2), rounded((top - bottom) / 2)]
    return rounded(max(radius, outline)), cells if "Structure" in unit.flags("Attributes") else []


def _detected_at(game: GameData, unit: Node) -> Iterator[float]:
    """The distances at which the unit's behaviors detect cloaked units."""
    for link in unit.items("BehaviorArray"):
        name = link.attributes.get("Link", "")
        if name in game["Behavior"]:
            distance = game["Behavior"][name].text("Modification", attribute="Detect")
            yield rounded(float(distance or 0))


def weapons(game: GameData, unit: Node) -> list[Facts]:
    """The weapons that a unit uses by itself, without an order."""
    known = (link.attributes.get("Link", "") for link in unit.items("WeaponArray"))
    found = [game["Weapon"][name] for name in known if name in game["Weapon"]]
    return [_weapon(game, one) for one in found if "Disabled" not in one.flags("Options")]


def _weapon(game: GameData, weapon: Node) -> Facts:
    effect = damage_of(game, weapon.text("DisplayEffect")) or Node()
    needed = weapon.text("TargetFilters").split(";")[0].split(",")
    facts: Facts = {
        "damage": rounded(effect.number("Amount")),
        "range": rounded(weapon.number("Range")),
        "cooldown_s": rounded(weapon.number("Period")),
        "delay_s": [rounded(weapon.number(f"RandomDelay{end}")) for end in ("Min", "Max")],
        "damage_point_s": rounded(weapon.number("DamagePoint")),
        "backswing_s": rounded(weapon.number("Backswing")),
        "range_slop": rounded(weapon.number("RangeSlop")),
        "missile_speed_per_s": missile_speed_per_s(game, weapon.text("Effect")),
        "attacks": int(weapon.number("DisplayAttackCount", default=1)),
        "targets": "Ground" if "Ground" in needed else "Air" if "Air" in needed else "Any",
    }
    for attribute in ATTRIBUTES:
        if extra := effect.number("AttributeBonus", attribute):
            facts["bonus"] = [attribute, rounded(extra)]
    return facts


def damage_of(game: GameData, name: str) -> Node | None:
    """The effect in a chain of effects that does the damage; None if no effect does damage."""
    effects = chain(game, name, FOLLOWED)
    return next((one for one in effects if one.tag == "CEffectDamage"), None)


def missile_speed_per_s(game: GameData, name: str) -> float:
    """The highest speed of the missile that a chain of effects launches, or 0 without a missile."""
    for effect in chain(game, name, FOLLOWED + ALSO):
        ammo, mover = effect.text("AmmoUnit"), effect.text("Movers", attribute="Link")
        if effect.tag == "CEffectLaunchMissile" and (ammo or mover):
            carried = game["Unit"][ammo].text("Mover") if ammo in game["Unit"] else ""
            known = next(
                (one for one in (mover, carried) if one in game["Mover"]), "MissileDefault"
            )
            phases = game["Mover"][known].items("MotionPhases")
            return rounded(max(phase.number("MaxSpeed") for phase in phases))
    return 0.0


def chain(
    game: GameData, name: str, fields: Sequence[str], before: tuple[str, ...] = ()
) -> Iterator[Node]:
    """An effect and all effects that follow from it, depth first."""
    if name not in game["Effect"] or name in before:
        return
    effect = game["Effect"][name]
    yield effect
    for field in fields:
        for item in effect.items(field):
            following = item.attributes.get("value") or item.attributes.get("Effect") or ""
            yield from chain(game, following, fields, (*before, name))


def from_tables(row: data_pb.UnitTypeData) -> Facts:
    """The facts that the data tables have about a unit type; unset fields are 0 in the tables."""
    facts: Facts = {ours: rounded(getattr(row, theirs)) for ours, theirs in OF_TABLES.items()}
    if row.require_attached:
        facts["tech_requirement_id"] = 0  # the row names the tech lab, which may be of any kind
    facts["needs_tech_lab"] = row.require_attached
    facts["tech_alias_id"] = row.tech_alias[0] if row.tech_alias else 0
    facts["attributes"] = [data_pb.Attribute.Name(one) for one in sorted(row.attributes)]
    if row.weapons:
        facts["weapon"] = in_order([_in_tables(weapon) for weapon in row.weapons])
    return facts


def _in_tables(weapon: data_pb.Weapon) -> Facts:
    facts: Facts = {
        "damage": rounded(weapon.damage),
        "range": rounded(weapon.range),
        "cooldown_s": rounded(weapon.speed),
        "attacks": weapon.attacks,
        "targets": data_pb.Weapon.TargetType.Name(weapon.type),
    }
    if weapon.damage_bonus:
        bonus = weapon.damage_bonus[0]
        facts["bonus"] = [data_pb.Attribute.Name(bonus.attribute), rounded(bonus.bonus)]
    return facts


def in_order(found: list[Facts]) -> Facts | None:
    """The useful weapons as a chain, ground before air; `other` of each is the next weapon.

    Weapons without damage are left out. Further weapons against the same targets are left out, too:
    some of them are the first weapon again, with another animation for near enemies.
    """
    order = ("Any", "Ground", "Air")
    found = sorted(found, key=lambda one: (order.index(one["targets"]), -one["range"]))
    useful: list[Facts] = []
    for weapon in found:
        covered = {one["targets"] for one in useful}
        if weapon["damage"] and not covered & {"Any", weapon["targets"]}:
            useful.append(weapon)
    linked: Facts | None = None
    for weapon in reversed(useful):
        said = {field: value for field, value in weapon.items() if USUAL.get(field) != value}
        linked = said if linked is None else said | {"other": linked}
    return linked


def completed(shown: Facts | None, known: Facts | None) -> Facts | None:
    """A weapon of the data tables, completed with the fields that only the catalogs have."""
    if shown is None or known is None:
        return shown or known
    weapon = shown | {field: known[field] for field in OF_CATALOGS if field in known}
    other = completed(shown.get("other"), known.get("other"))
    return weapon if other is None else weapon | {"other": other}


def in_melee(game: GameData, row: data_pb.UnitTypeData) -> Facts:
    """The facts about a unit type on melee maps, by the fields of `UnitType`; zeros are missing."""
    shown, known = from_tables(row), from_catalogs(game, row.name)
    weapon = completed(shown.get("weapon"), known["weapon"])
    return named(row, known | shown | {"weapon": weapon})


def elsewhere(game: GameData, row: data_pb.UnitTypeData) -> Facts:
    """All facts of a unit type on non-melee maps, where the catalogs override the data tables."""
    return named(row, from_tables(row) | from_catalogs(game, row.name))


def named(row: data_pb.UnitTypeData, facts: Facts) -> Facts:
    """The facts that are not 0, sorted by field, after the id and the race of the type."""
    named = {"id": row.unit_id, "race": common_pb.Race.Name(row.race)}
    return named | {field: facts[field] for field in sorted(facts) if facts[field]}
