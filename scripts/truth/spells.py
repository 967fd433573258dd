"""Finds, for each number of the stand-in's spells, the catalogs' field that has this number.

A path is a catalog, an entry and a field of the entry, such as `Effect/EMPSearch/AreaArray@Radius`.
The energy and the cooldown of a spell come from the spell's ability, the range from the data table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields

from sc2standin.data.spells import SPELLS, Aim, Spell
from sc2standin.data.tables import kept
from sc2standin.data.upgrades import STIMPACK_FACTOR, STIMPACK_LOOPS, STIMPACKS
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation.economy import structures
from truth.catalog import GameData
from truth.units import Facts, rounded

At = Callable[[str], float]
"""Reads the number at a path."""
Source = str | Callable[[At], float]
"""The path of a number, or a function that computes it from numbers at paths."""


def _acts(at: At, effect: str) -> float:
    """The total duration of an effect that acts periodically, in seconds."""
    return at(f"Effect/{effect}/PeriodCount") * at(f"Effect/{effect}/PeriodicPeriodArray")


def _flies(at: At, mover: str, path: str) -> float:
    """The flight time of a missile that starts from rest, in seconds."""
    way, phase = at(path), f"Mover/{mover}/MotionPhases"
    speed, gain = at(f"{phase}.MaxSpeed"), at(f"{phase}.Acceleration")
    if 2 * way * gain < speed**2:
        return math.sqrt(2 * way / gain)
    return way / speed + speed / gain / 2


def _storms(at: At) -> float:
    """How long a storm hurts a unit that stays in the storm; the buff outlasts the storm itself."""
    return _acts(at, "PsiStormPersistent") + at("Behavior/PsiStorm/Duration")


def _hurts(at: At, behavior: str, lasts: float) -> float:
    """The total damage of a behavior (a lasting effect on a unit) that lasts `lasts` seconds."""
    times = math.floor(lasts / at(f"Behavior/{behavior}/Period"))
    return times * at(f"Effect/{behavior}Damage/Amount")


SOURCES: Mapping[str, Mapping[str, Source]] = {
    "KD8 Charge": {
        "delay_s": "Behavior/KD8ChargeFate/Duration",
        "radius": "Effect/KD8SearchArea/AreaArray@Radius",
        "damage": "Effect/KD8ChargeExplodeDamage/Amount",
    },
    "Corrosive Bile": {
        "delay_s": lambda at: (
            at("Effect/RavagerCorrosiveBileCP/ExpireDelay")
            + _flies(
                at, "RavagerCorrosiveBile", "Effect/RavagerCorrosiveBileLaunchDown/LaunchOffset"
            )
        ),
        "radius": "Effect/RavagerCorrosiveBileSearch/AreaArray@Radius",
        "damage": "Effect/RavagerCorrosiveBileDamage/Amount",
    },
    "Anti-Armor Missile": {
        "delay_s": lambda at: _flies(
            at, "RavenShredderMissileDirect", "Abil/RavenShredderMissile/Range"
        ),
        "lasts_s": "Behavior/RavenShredderMissileArmorReductionUISubtruct/Duration",
        "radius": "Effect/RavenShredderMissileImpactSearchArea/AreaArray@Radius",
    },
    "Auto-Turret": {
        "lasts_s": "Behavior/AutoTurretTimedLife/Duration",
        "count": "Effect/AutoTurretRelease/SpawnCount",
    },
    "Steady Targeting": {
        "delay_s": lambda at: _acts(at, "ChannelSnipeCreatePersistent"),
        "damage": "Effect/ChannelSnipeDamage/Amount",
    },
    "EMP Round": {
        "delay_s": lambda at: _flies(at, "EMP2Weapon", "Abil/EMP/Range"),
        "radius": "Effect/EMPSearch/AreaArray@Radius",
        "takes_shields": "Effect/EMPDamage/ShieldBonus",
        "takes_energy": lambda at: -at("Effect/EMPModifyUnit/VitalArray:Energy@Change"),
    },
    "Guardian Shield": {
        "lasts_s": lambda at: _acts(at, "GuardianShieldPersistent"),
        "radius": "Effect/GuardianShieldSearch/AreaArray@Radius",
    },
    "Graviton Beam": {"lasts_s": lambda at: _acts(at, "GravitonBeam")},
    "Psionic Storm": {
        "lasts_s": _storms,
        "radius": "Effect/PsiStormSearch/AreaArray@Radius",
        "damage_over_time": lambda at: (
            at("Effect/PsiStormDamageInitial/Amount") + _hurts(at, "PsiStorm", _storms(at))
        ),
    },
    "Feedback": {
        "takes_energy_share": lambda at: (
            -at("Effect/FeedbackEnergyLoss/VitalArray:Energy.ChangeFraction")
        ),
        "damage_per_energy": "Effect/Feedback/VitalFractionCurrent:Energy",
    },
    "Chrono Boost": {"lasts_s": "Behavior/ChronoBoostEnergyCost/Duration"},
    "Fungal Growth": {
        "delay_s": lambda at: _flies(at, "FungalGrowthWeapon", "Abil/FungalGrowth/Range"),
        "lasts_s": "Behavior/FungalGrowth/Duration",
        "radius": "Effect/FungalGrowthSearch/AreaArray@Radius",
        "damage_over_time": lambda at: _hurts(
            at, "FungalGrowth", at("Behavior/FungalGrowth/Duration")
        ),
    },
    "Blinding Cloud": {
        "lasts_s": lambda at: _acts(at, "BlindingCloudCP"),
        "radius": "Effect/BlindingCloudSearch/AreaArray@Radius",
    },
    "Transfusion": {
        "lasts_s": "Behavior/Transfusion/Duration",
        "heals": "Effect/Transfusion/VitalArray:Life.Change",
    },
    "Archon Warp": {"lasts_s": "Abil/ArchonWarp/Info@Time"},
    **{
        f"Hallucination of {name}": {
            "lasts_s": "Behavior/HallucinationTimedLife/Duration",
            "count": f"Effect/HallucinationCreate{name}/SpawnCount",
        }
        for name in (spell.summons for spell in SPELLS if spell.hallucinates)
    },
    "Stimpack": {
        "marine's life": "Abil/Stimpack/Cost.Vital:Life",
        "marauder's life": "Abil/StimpackMarauder/Cost.Vital:Life",
        "lasts_s": "Behavior/Stimpack/Duration",
        "speed": "Behavior/Stimpack/Modification@MoveSpeedMultiplier",
        "rate": "Behavior/Stimpack/Modification@AttackSpeedMultiplier",
    },
    "Orbital Command": {
        "mule's energy": "Abil/CalldownMULE/Cost.Vital:Energy",
        "mule_s": "Behavior/MULETimedLife/Duration",
        "scan's energy": "Abil/ScannerSweep/Cost.Vital:Energy",
        "scan_s": lambda at: _whole_loops(at("Effect/ScannerSweep/ExpireDelay")),
        "scan's radius": "Effect/ScannerSweep/RevealRadius",
    },
}
NUMBERS = [field.name for field in fields(Spell) if field.type == "float"]
ROWS = {row.ability_id: row for row in kept().abilities}


def _whole_loops(seconds: float) -> float:
    return round(seconds * LOOPS_PER_DATA_S) / LOOPS_PER_DATA_S


def ours() -> dict[str, Facts]:
    """The stand-in's numbers of each spell, of stimpacks and of an orbital command."""
    found: dict[str, Facts] = {}
    for spell in SPELLS:
        facts: Facts = {name: rounded(getattr(spell, name)) for name in NUMBERS}
        if spell.aim is Aim.PARTNER:
            facts["range"] = 0.0  # the distance at which partners merge is a rule of the stand-in
        if spell.summons:
            facts["count"] = spell.count
        found[spell.name] = {name: value for name, value in facts.items() if value}
    life = {f"{name.lower()}'s life": one.costs_life for name, one in STIMPACKS.items()}
    found["Stimpack"] = life | {"lasts_s": STIMPACK_LOOPS / LOOPS_PER_DATA_S}
    found["Stimpack"] |= {"speed": STIMPACK_FACTOR, "rate": STIMPACK_FACTOR}
    found["Orbital Command"] = {
        "mule's energy": structures.ENERGY,
        "mule_s": structures.MULE_LOOPS / LOOPS_PER_DATA_S,
        "scan's energy": structures.ENERGY,
        "scan_s": structures.SCAN_LOOPS / LOOPS_PER_DATA_S,
        "scan's radius": structures.SCAN_CELLS,
    }
    return found


def in_catalogs(game: GameData) -> dict[str, Facts]:
    """The numbers that `ours` returns, but read from the catalogs and the data table."""

    def at(path: str) -> float:
        kind, name, field = path.split("/")
        field, _, attribute = field.partition("@")
        node = game[kind][name]
        for part in field.split("."):
            one, _, index = part.partition(":")
            node = node.at(one, index or "0")
        return float(node.attributes.get(attribute or "value", "0").split(",")[-1])

    abilities = {spell.name: ROWS[spell.ability_id] for spell in SPELLS}
    found: dict[str, Facts] = {}
    for name, sources in SOURCES.items():
        facts = {
            field: at(one) if isinstance(one, str) else one(at) for field, one in sources.items()
        }
        if name in abilities:
            cost = f"Abil/{abilities[name].link_name}/Cost"
            facts["energy"] = at(f"{cost}.Vital:Energy")
            facts["cooldown_s"] = at(f"{cost}.Cooldown@TimeUse")
            facts["range"] = abilities[name].cast_range
        found[name] = {field: rounded(value) for field, value in facts.items() if value}
    return found
