"""What units cast, for energy or with a cooldown: spells as data.

Ids, targets and ranges are those of the game's ability table; times, damage and energy are those of
patch 5.0.3, from memory and not verified. Times are in game loops; a second of the players' clock
has 22.4. `simulation.spells` carries them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sc2standin.game_time import LOOPS_PER_S


class Aim(Enum):
    """What a spell is cast on."""

    SELF = "no target"
    POINT = "a point"
    POINT_OR_UNIT = "a point or a unit"
    UNIT = "a unit"
    PARTNER = "another unit that gets the same command"


class Side(Enum):
    """Whom a spell meets."""

    ENEMIES = "enemies"
    OWN = "own units"
    ALL = "all units"


@dataclass(frozen=True)
class Spell:
    """One ability that is cast; what a field says of units holds for those that the spell meets.

    A spell that is aimed at a unit meets this unit alone if it has no `radius`, else all units of
    its side within the radius.
    """

    name: str
    ability_id: int
    casters: tuple[str, ...]
    """Names of the unit types."""
    aim: Aim
    side: Side = Side.ENEMIES
    range: float = 0.0
    """Greatest distance, from the caster's edge to the point or the target's edge, in cells."""
    energy: float = 0.0
    cooldown_loops: int = 0
    delay_loops: int = 0
    """Loops from the cast until it takes effect."""
    lasts_loops: int = 0
    """Loops from then on, for which its buffs, its effect and its damage per loop last."""
    radius: float = 0.0
    effect_id: int = 0
    """What an observation shows on the ground, until the spell is over; 0 for nothing."""
    marker: str = ""
    """The type of the unit that lies there until the spell takes effect."""
    buffs: tuple[int, ...] = ()
    """What an observation shows of the units."""
    damage: float = 0.0
    """Taken once, when the spell takes effect."""
    damage_per_loop: float = 0.0
    heals: float = 0.0
    """Life given at once."""
    takes_shields: float = 0.0
    takes_energy: bool = False
    damage_per_energy: float = 0.0
    """Damage for each unit of energy that is taken."""
    summons: str = ""
    """The type of the units that appear, and go when the spell is over."""
    count: int = 1
    """How many appear."""
    hallucinates: bool = False
    """True if they only look like it."""
    becomes: str = ""
    """The type that caster and target become together; it grows while the spell lasts."""
    shown_as: int = 0
    """The ability that an order shows, if it is not this one."""
    ground_only: bool = False
    biological_only: bool = False
    structures_only: bool = False


def _loops(seconds: float) -> int:
    return round(seconds * LOOPS_PER_S)


_HALLUCINATIONS = (
    *((146, "Archon", 1), (148, "Colossus", 1), (150, "HighTemplar", 2), (152, "Immortal", 1)),
    *((154, "Phoenix", 1), (156, "Probe", 4), (158, "Stalker", 2), (160, "VoidRay", 1)),
    *((162, "WarpPrism", 1), (164, "Zealot", 2), (2114, "Oracle", 1), (2389, "Disruptor", 1)),
    (2391, "Adept", 2),
)
"""The ability, the type, and how many appear."""

SPELLS: tuple[Spell, ...] = (
    Spell(
        *("KD8 Charge", 2588, ("Reaper",), Aim.POINT_OR_UNIT),
        range=5,
        cooldown_loops=_loops(14),
        delay_loops=_loops(2),
        radius=2,
        marker="KD8Charge",
        damage=5,
        ground_only=True,
    ),
    Spell(
        *("Corrosive Bile", 2338, ("Ravager",), Aim.POINT, Side.ALL),
        range=9,
        cooldown_loops=_loops(7),
        delay_loops=_loops(2.5),
        radius=0.5,
        effect_id=11,
        damage=60,
    ),
    Spell(
        *("Anti-Armor Missile", 3753, ("Raven",), Aim.UNIT, Side.ENEMIES),
        range=10,
        energy=75,
        delay_loops=_loops(1),
        lasts_loops=_loops(21),
        radius=2.88,
        buffs=(279, 280),
    ),
    Spell(
        *("Auto-Turret", 1764, ("Raven",), Aim.POINT),
        range=2,
        energy=50,
        lasts_loops=_loops(8),
        summons="AutoTurret",
    ),
    Spell(
        *("Steady Targeting", 2714, ("Ghost", "GhostAlternate", "GhostNova"), Aim.UNIT),
        range=10,
        energy=50,
        delay_loops=_loops(1.43),
        damage=170,
        biological_only=True,
    ),
    Spell(
        *("EMP Round", 1628, ("Ghost", "GhostAlternate", "GhostNova"), Aim.POINT, Side.ALL),
        range=10,
        energy=75,
        delay_loops=_loops(0.5),
        radius=1.5,
        takes_shields=100,
        takes_energy=True,
    ),
    Spell(
        *("Guardian Shield", 76, ("Sentry",), Aim.SELF, Side.OWN),
        energy=75,
        lasts_loops=_loops(11),
        radius=4.5,
        effect_id=2,
        buffs=(18,),
    ),
    Spell(
        *("Graviton Beam", 173, ("Phoenix",), Aim.UNIT),
        range=4,
        energy=50,
        lasts_loops=_loops(7),
        buffs=(5,),
        ground_only=True,
    ),
    Spell(
        *("Psionic Storm", 1036, ("HighTemplar",), Aim.POINT, Side.ALL),
        range=9,
        energy=75,
        lasts_loops=_loops(2.85),
        radius=1.5,
        effect_id=1,
        buffs=(28,),
        damage_per_loop=1.25,
    ),
    Spell(
        *("Feedback", 140, ("HighTemplar",), Aim.UNIT),
        range=10,
        energy=50,
        takes_energy=True,
        damage_per_energy=0.5,
    ),
    Spell(
        *("Chrono Boost", 3755, ("Nexus",), Aim.UNIT, Side.OWN),
        range=500,
        energy=50,
        lasts_loops=_loops(20),
        buffs=(281,),
        structures_only=True,
    ),
    Spell(
        *("Fungal Growth", 74, ("Infestor",), Aim.POINT),
        range=10,
        energy=75,
        delay_loops=_loops(0.7),
        lasts_loops=_loops(3),
        radius=2.25,
        buffs=(17,),
        damage_per_loop=30 / _loops(3),
    ),
    Spell(
        *("Blinding Cloud", 2063, ("Viper",), Aim.POINT),
        range=10,
        energy=100,
        lasts_loops=_loops(5.7),
        radius=2,
        effect_id=10,
        buffs=(83,),
    ),
    Spell(
        *("Transfusion", 1664, ("Queen",), Aim.UNIT, Side.OWN),
        range=7,
        energy=50,
        lasts_loops=_loops(7.14),
        buffs=(288,),
        heals=75,
        biological_only=True,
    ),
    Spell(
        *("Archon Warp", 1766, ("HighTemplar", "DarkTemplar"), Aim.PARTNER, Side.OWN),
        range=0.2,
        lasts_loops=_loops(8.57),
        becomes="Archon",
        shown_as=1767,
    ),
    *(
        Spell(
            *(f"Hallucination of {name}", ability_id, ("Sentry",), Aim.SELF),
            energy=75,
            lasts_loops=_loops(43),
            summons=name,
            count=count,
            hallucinates=True,
        )
        for ability_id, name, count in _HALLUCINATIONS
    ),
)

SPELL_BY_ABILITY = {spell.ability_id: spell for spell in SPELLS}
ABILITIES_OF: dict[str, tuple[int, ...]] = {}
"""The spells of each unit type, by its name."""
for _spell in SPELLS:
    for _name in _spell.casters:
        ABILITIES_OF[_name] = (*ABILITIES_OF.get(_name, ()), _spell.ability_id)
