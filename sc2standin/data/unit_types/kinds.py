"""Unit types: the fields that the simulation uses, and the damage of a hit.

Numbers are for the game speed "normal": a second has 16 loops, as in the API's `UnitTypeData`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb

from sc2standin.game_time import LOOPS_PER_DATA_S

BIOLOGICAL, MECHANICAL, STRUCTURE = data_pb.Biological, data_pb.Mechanical, data_pb.Structure


@dataclass(frozen=True)
class WeaponType:
    """One weapon; `cooldown_s` is the time from one attack to the next.

    A unit whose weapon has a `splash` explodes when it attacks and when it is killed. The explosion
    hits every enemy whose edge is within the distance `splash` of the unit's centre.
    """

    damage: float
    range: float
    cooldown_s: float
    delay_s: tuple[float, float] = (-0.0625, 0.125)
    """The least and the greatest random addition to each cooldown."""
    damage_point_s: float = 0.166992188
    """Time from the beginning of an attack to its damage, or to the launch of its missile."""
    backswing_s: float = 0.5
    """The time after the damage point for which the unit pursues no other target by itself."""
    range_slop: float = 1.0
    """How far out of the weapon's range a target may move without escaping an attack under way."""
    missile_speed_per_s: float = 0.0
    """The speed of the weapon's missiles; 0 for a weapon that hits immediately."""
    attacks: int = 1
    targets: data_pb.Weapon.TargetType.ValueType = data_pb.Weapon.Ground
    bonus: tuple[data_pb.Attribute.ValueType, float] | None = None
    splash: float = 0.0
    beam: float = 0.0
    """The greatest distance, across the shot, at which enemies beside the target are hit."""
    min_range: float = 0.0
    """The least range: the weapon cannot be aimed at units that are nearer."""
    blast: tuple[tuple[float, float], ...] = ()
    """The circles around the target, from the smallest on, each as its radius and share of damage.

    Other units in a circle, own ones included, take the circle's share of the damage.
    """
    other: WeaponType | None = None
    """A second weapon, for units that this weapon cannot hit, or to which it does less damage."""

    @cached_property
    def reach(self) -> float:
        """The longer range of this weapon and of the second one, `other`."""
        return self.range if self.other is None else max(self.range, self.other.range)

    @cached_property
    def cooldown_loops(self) -> float:
        """The number of loops from one attack to the next."""
        return self.cooldown_s * LOOPS_PER_DATA_S

    @cached_property
    def damage_point_loops(self) -> float:
        """The number of loops from the beginning of an attack to its damage."""
        return self.damage_point_s * LOOPS_PER_DATA_S

    @cached_property
    def missile_step(self) -> float:
        """The distance that a missile flies in a loop; 0 for a weapon that hits immediately."""
        return self.missile_speed_per_s / LOOPS_PER_DATA_S

    @cached_property
    def longest_range(self) -> float:
        """Range plus slop of this weapon or of `other`, whichever is greater, in cells."""
        own = self.range + self.range_slop
        return own if self.other is None else max(own, self.other.longest_range)

    @cached_property
    def backswing_loops(self) -> float:
        """The number of loops after the damage point for which the unit stands still."""
        return self.backswing_s * LOOPS_PER_DATA_S

    @cached_property
    def delay_loops(self) -> tuple[float, float]:
        """The least random addition to a cooldown, and the width of its range, in loops."""
        least, most = self.delay_s
        return least * LOOPS_PER_DATA_S, (most - least) * LOOPS_PER_DATA_S

    def hits(self, target: UnitType) -> bool:
        """True if this weapon or the second one, `other`, can be aimed at units of this type."""
        return self._can_hit(target) or (self.other is not None and self.other.hits(target))

    def against(self, target: UnitType) -> WeaponType:
        """The weapon, this one or `other`, that is fired at units of this type."""
        usable = [one for one in (self, self.other) if one is not None and one._can_hit(target)]
        return max(usable, key=lambda one: hit(one, target), default=self)

    def _can_hit(self, target: UnitType) -> bool:
        if self.targets == data_pb.Weapon.Any or target.strides:  # all weapons hit a tall unit
            return True
        return target.flies != (self.targets == data_pb.Weapon.Ground)


@dataclass(frozen=True)
class HealType:
    """The ability to heal wounded biological units of the same owner."""

    range: float
    life_per_s: float
    life_per_energy: float

    @cached_property
    def life_per_loop(self) -> float:
        """Life that is healed in a loop."""
        return self.life_per_s / LOOPS_PER_DATA_S


@dataclass(frozen=True, eq=False)  # compared by identity, because each type has one object
class UnitType:
    """The data of one type of unit."""

    id: int
    name: str
    race: common.Race.ValueType = common.NoRace
    life: float = 0.0
    shields: float = 0.0
    armor: float = 0.0
    radius: float = 0.375
    separation: float = 0.0
    """The radius that the unit keeps free of other walking units; 0 if it equals `radius`."""
    speed_per_s: float = 0.0
    sight: float = 0.0
    weapon: WeaponType | None = None
    attributes: tuple[data_pb.Attribute.ValueType, ...] = ()
    minerals: int = 0
    vespene: int = 0
    food: float = 0.0
    food_provided: float = 0.0
    cargo_size: int = 0
    build_time_loops: float = 0.0
    build_ability_id: int = 0
    has_minerals: bool = False
    has_vespene: bool = False
    footprint: tuple[float, float] = (0.0, 0.0)
    """Half the width and half the height of the cells on which a structure stands."""
    tech_requirement_id: int = 0
    """The id of the structure's type that this type requires, 0 for none."""
    tech_alias_id: int = 0
    """If the type with this id is required, this type suffices, too; 0 for none."""
    needs_tech_lab: bool = False
    """True if only a structure with a tech lab can train units of this type."""
    made_from: UnitType | None = None
    """The type that is changed into this type; the change costs the difference of their costs."""
    life_per_s: float = 0.0
    """The life that regenerates by itself in a second."""
    life_delay_s: float = 0.0
    """The time after the last hit for which no life regenerates."""
    acceleration: float = 0.0
    """Acceleration in cells per second squared; 0 for a unit that is at full speed immediately."""
    turn_per_s: float = 0.0
    """The turning rate, in degrees per second; 0 for a unit that turns immediately."""
    energy: float = 0.0
    """The most energy that the unit can have."""
    energy_at_start: float = 0.0
    heals: HealType | None = None
    flies: bool = False
    rooted: bool = False
    """True for a unit that accepts the orders of mobile units, but cannot walk."""
    strides: bool = False
    """True if the unit walks over cliffs and ground units, and weapons against air units hit it."""
    cloaked: bool = False
    """True if enemies see the unit only while they detect it."""
    detection: float = 0.0
    """Distance at which the unit detects cloaked units, in cells."""
    creep: float = 0.0
    """Distance to which the unit spreads creep, in cells."""
    passive: bool = False
    """True if the unit fires and heals only when it is ordered to."""
    works: bool = False
    """True for a worker; workers fire only if they are ordered to attack."""
    hallucination: bool = False
    """True for a hallucination, which only looks like the type, and takes double damage."""
    commands: tuple[str, ...] = ()
    """The names of a type's abilities (`data.abilities`); empty if it has those of mobile units."""
    refuses: tuple[str, ...] = ()
    """The names of abilities on the unit's command card that the stand-in refuses."""
    variant_of: UnitType | None = None
    """The original type, if this type is a variant of it after an upgrade or a buff."""
    buff_id: int = 0
    """The buff that units of this type show, 0 for none."""

    @cached_property
    def cost(self) -> tuple[int, int]:
        """The cost in minerals and gas."""
        before = (
            (0, 0) if self.made_from is None else (self.made_from.minerals, self.made_from.vespene)
        )
        return self.minerals - before[0], self.vespene - before[1]

    @cached_property
    def mobile(self) -> bool:
        """True if the unit walks, flies or is rooted. False for every structure."""
        return (self.speed_per_s > 0 or self.rooted) and STRUCTURE not in self.attributes

    @cached_property
    def afloat(self) -> bool:
        """True for a structure that has lifted off."""
        return self.flies and STRUCTURE in self.attributes

    @cached_property
    def blocks(self) -> bool:
        """True if units cannot walk over the cells on which this unit stands."""
        return self.footprint[0] > 0 and self.name != "SupplyDepotLowered"

    @cached_property
    def is_counted_worker(self) -> bool:
        """True for a worker that takes supply; hallucinations and MULEs take none."""
        return self.works and self.food > 0

    @cached_property
    def recovers(self) -> bool:
        """True if shields, life or energy regenerate by themselves."""
        return self.shields > 0 or self.life_per_s > 0 or self.energy > 0

    @cached_property
    def aloft(self) -> bool:
        """True if the unit passes over cliffs and ground units. Two such units still collide."""
        return self.flies or self.strides

    @cached_property
    def invulnerable(self) -> bool:
        """True for scenery, which has no life and cannot be attacked."""
        return self.life == 0

    @cached_property
    def room(self) -> float:
        """The radius that the unit keeps free of other walking units, in cells."""
        return self.separation or self.radius

    @cached_property
    def gain(self) -> float:
        """The increase of speed in a loop until full speed, in cells per loop; 0 if none."""
        return self.acceleration / LOOPS_PER_DATA_S**2

    @cached_property
    def turn(self) -> float:
        """The angle by which the unit turns in a loop, in radians; 0 if it turns immediately."""
        return math.radians(self.turn_per_s) / LOOPS_PER_DATA_S

    @cached_property
    def step(self) -> float:
        """The distance walked in one loop at full speed, in cells."""
        return self.speed_per_s / LOOPS_PER_DATA_S


@cache
def hallucination_of(kind: UnitType) -> UnitType:
    """A type that looks like this one, but has no weapon and no cost, and detects nothing."""
    return replace(
        kind, hallucination=True, weapon=None, minerals=0, vespene=0, food=0.0, detection=0.0
    )


MIN_HIT = 0.5
"""The least damage of a single hit, however much armor the target has."""


def hit(weapon: WeaponType, target: UnitType) -> float:
    """The damage of one attack of a weapon on a target, as the sum of all its hits."""
    bonus = weapon.bonus[1] if weapon.bonus and weapon.bonus[0] in target.attributes else 0.0
    return max(MIN_HIT, weapon.damage + bonus - target.armor) * weapon.attacks
