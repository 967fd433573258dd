"""Compares the changes that upgrades make to the stand-in's unit types with the game's catalogs.

A bonus against an attribute is left out if the weapon has no such bonus without the upgrade. The
speed of units that cannot walk without the upgrade is left out, too.
"""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common

from sc2standin.data import jsonc, upgrades
from sc2standin.data.research import LEVELS, UPGRADES
from sc2standin.data.spells import SPELLS
from sc2standin.data.unit_types import files
from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import STRUCTURE
from truth.catalog import GameData, Node
from truth.units import AT_ONCE, Facts, damage_of, in_order, rounded, weapons

OF_UNITS = {
    "life": "LifeMax",
    "armor": "LifeArmor",
    "shields_armor": "ShieldArmor",
    "speed_per_s": "Speed",
    "acceleration": "Acceleration",
}
"""For a unit's fields that hold a number: a dict from the stand-in's to the catalogs' names."""
NAMES = [name for name, _ in jsonc.read(files.NUMBERS)]
MARKERS = {spell.marker for spell in SPELLS}
"""The types of units that mark a spell's place until the spell acts; such units cannot be hit."""


def ours() -> dict[str, Facts]:
    """The changes of unit types by each upgrade or level, in the stand-in's data and code."""
    found: dict[str, Facts] = {}
    for name, entry in UPGRADES.items():
        changed: dict[str, Facts] = {kind: {"armor": 1} for kind in entry.get("armor_of", ())}
        for kind in (TYPE_BY_NAME[one] for one in NAMES if one not in MARKERS):
            in_terran = kind.race == common.Terran and STRUCTURE in kind.attributes
            if entry["id"] == upgrades.STRUCTURE_ARMOR and in_terran:
                changed[kind.name] = {"armor": upgrades.STRUCTURE_ARMOR_POINTS}
            if entry["id"] == upgrades.PROTOSS_SHIELDS and kind.race == common.Protoss:
                changed[kind.name] = {"shields_armor": 1}
        for field in ("damage", "damage_on_air"):
            for kind_name, gain in entry.get(field, {}).items():
                changed.setdefault(kind_name, {})[field] = gain
        for kind_name, change in entry.get("changes", {}).items():
            changed[kind_name] = {field: rounded(value) for field, value in change.items()}
        found |= {f"{name}, {kind_name}": facts for kind_name, facts in changed.items()}
    return found


def in_catalogs(game: GameData) -> dict[str, Facts]:
    """The changes by upgrades in the catalogs; a level unlike level 1 has an entry of its own."""
    found: dict[str, Facts] = {}
    for name, entry in UPGRADES.items():
        by_level = "general_id" in entry
        ids = [f"{name}Level{level + 1}" for level in range(LEVELS)] if by_level else [name]
        for kind_name in (one for one in NAMES if one in game["Unit"]):
            for id in ids:
                facts = changes(game, game["Upgrade"][id], game["Unit"][kind_name], by_level)
                first = found.get(f"{name}, {kind_name}", {})
                if facts != first:
                    found[f"{name if id == ids[0] else id}, {kind_name}"] = facts
    return found


def changes(game: GameData, upgrade: Node, unit: Node, by_level: bool) -> Facts:
    """The numbers that an upgrade adds to a unit type's numbers; {} if it adds nothing."""
    path = f"Unit,{unit.attributes['id']}"
    facts: Facts = {
        field: _added(upgrade, f"{path},{theirs}", unit.number(theirs))
        for field, theirs in OF_UNITS.items()
    }
    if not unit.number("Speed"):
        facts["speed_per_s"] = 0.0
    if not 0 < unit.number("Acceleration") < AT_ONCE:
        facts["acceleration"] = 0.0
    links = (link.attributes.get("Link", "") for link in unit.items("WeaponArray"))
    known = (game["Weapon"][one] for one in links if one in game["Weapon"])
    fired = (weapon for weapon in known if "Disabled" not in weapon.flags("Options"))
    found = zip(weapons(game, unit), fired, strict=True)
    weapon = in_order([one | _added_to(game, upgrade, node, one) for one, node in found])
    if weapon and by_level:
        facts["damage"] = weapon["more"]
        on_air = weapon.get("other") or {}
        if on_air.get("targets") == "Air" and on_air["more"] != weapon["more"]:
            facts["damage_on_air"] = on_air["more"]
    elif weapon:
        facts |= {"bonus": weapon["more"][1], "range": weapon["further"], "rate": weapon["faster"]}
    return {field: value for field, value in facts.items() if value not in (0, [0, 0])}


def _added_to(game: GameData, upgrade: Node, weapon: Node, known: Facts) -> Facts:
    """The numbers that an upgrade adds to the numbers of a weapon."""
    name, effect = weapon.attributes["id"], damage_of(game, weapon.text("DisplayEffect")) or Node()
    bonus = f"AttributeBonus[{known.get('bonus', [''])[0]}]"
    paths = (f"Effect,{effect.attributes.get('id')},{field}" for field in ("Amount", bonus))
    return {
        "more": [_added(upgrade, path) for path in paths],
        "further": _added(upgrade, f"Weapon,{name},Range", weapon.number("Range")),
        "faster": _added(upgrade, f"Weapon,{name},RateMultiplier"),
    }


def _added(upgrade: Node, reference: str, before: float = 0.0) -> float:
    """The amount by which an upgrade changes a number, by adding to the number or by setting it."""
    added = 0.0
    for one in upgrade.items("EffectArray"):
        if one.attributes.get("Reference") == reference:
            value = rounded(float(one.attributes.get("Value", 0)))
            sets = one.attributes.get("Operation") == "Set"
            added = value - rounded(before) if sets else added + value
    return rounded(added)
