"""Spells: abilities that cost energy or have a cooldown; their data are in `spells.jsonc`.

Times are in seconds of 16 loops, as in the game's data. `simulation.spells` casts the spells.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path

from sc2standin.data.jsonc import Readers, read
from sc2standin.game_time import LOOPS_PER_DATA_S


class Aim(Enum):
    """The target of a spell."""

    SELF = "no target"
    POINT = "a point"
    POINT_OR_UNIT = "a point or a unit"
    UNIT = "a unit"
    PARTNER = "another unit that gets the same command"


class Side(Enum):
    """The units that a spell affects."""

    ENEMIES = "enemies"
    OWN = "own units"
    ALL = "all units"


@dataclass(frozen=True)
class Spell:
    """One spell; the fields say what it does to each unit that it affects.

    A spell without a `radius` affects only its target. A spell with a `radius` affects all units of
    its `side` within the radius.
    """

    name: str
    ability_id: int
    casters: tuple[str, ...]
    """The names of the unit types that can cast the spell."""
    aim: Aim
    side: Side = Side.ENEMIES
    range: float = 0.0
    """Greatest distance from the caster's edge to the point, or to the target's edge, in cells."""
    energy: float = 0.0
    cooldown_s: float = 0.0
    delay_s: float = 0.0
    """Time from the cast until the spell takes effect, in seconds."""
    lasts_s: float = 0.0
    """How long buffs, damage, and the effect on the ground continue after the spell takes effect.

    One number suffices for all three: a storm, for example, is shown as long as it does damage.
    """
    radius: float = 0.0
    effect_id: int = 0
    """The id of the spell's effect on the ground, shown until the spell is over; 0 for none."""
    marker: str = ""
    """The type of the unit that marks the spell's place until the spell takes effect."""
    buffs: tuple[int, ...] = ()
    """The ids of the buffs that observations show on the affected units."""
    damage: float = 0.0
    """The damage at the moment when the spell takes effect."""
    damage_over_time: float = 0.0
    """The damage that is spread evenly over the spell's duration."""
    heals: float = 0.0
    """Life that a unit gains when the spell takes effect."""
    takes_shields: float = 0.0
    takes_energy: float = 0.0
    """The most energy that a unit loses."""
    takes_energy_share: float = 0.0
    """The share of its energy that a unit loses, 0 to 1."""
    damage_per_energy: float = 0.0
    """The damage for each point of energy that a unit loses."""
    summons: str = ""
    """The type of the units that appear when the spell is cast, and vanish when it is over."""
    count: int = 1
    """The number of units that appear."""
    hallucinates: bool = False
    """True if the summoned units are hallucinations."""
    becomes: str = ""
    """The type of unit into which caster and target merge; the unit grows while the spell lasts."""
    shown_as: int = 0
    """The ability id that observations show for an order to cast, if it is not `ability_id`."""
    ground_only: bool = False
    biological_only: bool = False
    structures_only: bool = False

    @cached_property
    def cooldown_loops(self) -> int:
        """The number of loops from one cast to the next."""
        return _loops(self.cooldown_s)

    @cached_property
    def delay_loops(self) -> int:
        """The number of loops from the cast until the spell takes effect."""
        return _loops(self.delay_s)

    @cached_property
    def lasts_loops(self) -> int:
        """The number of loops for which the spell lasts."""
        return _loops(self.lasts_s)

    @cached_property
    def damage_per_loop(self) -> float:
        """The part of `damage_over_time` that is done in each loop."""
        return self.damage_over_time / self.lasts_loops if self.damage_over_time else 0.0


def _loops(seconds: float) -> int:
    return round(seconds * LOOPS_PER_DATA_S)


_READERS: Readers = {"aim": Aim, "side": Side, "casters": tuple, "buffs": tuple}
SPELLS: tuple[Spell, ...] = tuple(
    Spell(name=name, **entry)
    for name, entry in read(Path(__file__).with_name("spells.jsonc"), _READERS)
)
SPELL_BY_ABILITY = {spell.ability_id: spell for spell in SPELLS}
ABILITIES_OF: dict[str, tuple[int, ...]] = {}
"""The ability ids of each unit type's spells, by the type's name."""
for _spell in SPELLS:
    for _name in _spell.casters:
        ABILITIES_OF[_name] = (*ABILITIES_OF.get(_name, ()), _spell.ability_id)
