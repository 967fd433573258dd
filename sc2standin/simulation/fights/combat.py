"""Combat: target choice and damage.

Rules of combat:
* An attack begins if the target is in range, measured between the edges of the two units, and the
  cooldown is over. A little later, at the weapon's damage point, the attack does its damage, or
  launches its missile. A missile follows its target.
* Before the damage point, an attack ends without a cooldown if the unit does something else, or if
  the target dies, hides or is beyond the weapon's range plus its slop.
* After an attack the unit stands for the weapon's backswing, unless the next target is in range or
  a client orders the unit to move.
* All hits of a loop count, even those of units that die in this loop.
* Each cooldown is a little shorter or longer, at random, as in the real game. Without this random
  part, equal fights would always have the same result.
* A unit with an order to move or to cast does not fire. A unit that holds its position does not
  walk. A passive unit fires only with an attack order.
* A unit that is not ordered to attack a certain unit keeps its target while the target is in range.
  If the target leaves the range, the unit follows it until another enemy is in range. A unit that
  neither keeps nor follows a target takes the nearest enemy within its scan range, or else a
  bystander. A computer's units scan as far as they see.
* A unit with two weapons fires the weapon that can hit the target; if both can, the stronger one.
* A worker attacks only if it is ordered to.

Bystanders are units that can be attacked and are not in `Pairs`: structures, and workers at work.
Bystanders do not fight, and other units do not push them. A unit attacks a bystander only if no
other target is in reach: first the nearest worker, then the nearest structure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.kinds import WeaponType
from sc2standin.simulation.fights.damage import around, beside, damage_of, explode, harm
from sc2standin.simulation.fights.pairs import Pairs, hostile, is_target
from sc2standin.simulation.paths import Routes
from sc2standin.simulation.units import NEVER, Unit, Way, way_to
from sc2standin.simulation.world import World

_HOLD, _ATTACK = OrderKind.HOLD, OrderKind.ATTACK
_HOLDS_FIRE = (OrderKind.MOVE, OrderKind.CAST)
_NOBODY = (None, 0.0)


class Missile(NamedTuple):
    """A missile in the air."""

    lands_at: float
    """The time at which the missile hits its target, in loops."""
    shooter: Unit
    target_tag: int


class Combat:
    """The fights of one episode."""

    def __init__(self, world: World, routes: Routes | None) -> None:
        self._world, self._routes = world, routes
        self._missiles: list[Missile] = []
        """The missiles in the air, in the order of their launch."""

    def fight(self, pairs: Pairs, bystanders: Bystanders | None, ways: list[Way | None]) -> bool:
        """Choose targets, attack and let missiles land; returns True while there is a fight.

        Each unit with a target gets a new way: a unit whose target is in range stands, and any
        other unit walks to its target.
        """
        if not (pairs.hostile or bystanders is not None or self._missiles):
            return False
        fights = bool(self._missiles)
        damage: dict[Unit, float] = {}
        if fights:
            self._land(damage)
        shots: list[tuple[Unit, WeaponType, Unit]] = []
        if bystanders is not None:
            bystanders.measure()
        for i, (unit, weapon) in enumerate(zip(pairs.units, pairs.weapons, strict=True)):
            target, gap = _NOBODY
            if weapon is not None and not _holds_fire(unit):
                target, gap = _choose_target(pairs, bystanders, i, weapon)
            if weapon is None or target is None:
                unit.lower_weapon()
                continue
            fights = True
            fired = weapon if weapon.other is None else weapon.against(target.type)
            if gap < pairs.closest[i]:
                unit.lower_weapon()
            elif gap <= fired.range + (fired.range_slop if unit.attacks(target) else 0.0):
                ways[i] = None
                if self._attack(unit, fired, target):
                    shots.append((unit, fired, target))
            else:
                unit.go_after(target)
                ways[i] = self._approach(unit, target, ways[i])
        for unit, fired, target in shots:
            self._fire(pairs, unit, fired, target, damage)
        exploding = [unit for unit, weapon, _target in shots if weapon.splash]
        exploding += [one for one, hits in damage.items() if harm(self._world, one, hits)]
        if exploding:
            explode(self._world, pairs.units, exploding)
        return fights

    def _attack(self, unit: Unit, fired: WeaponType, target: Unit) -> bool:
        """Begin or continue an attack; returns True when it reaches its damage point."""
        world = self._world
        loop, reaction_loops = world.loop, world.reaction_loops
        if reaction_loops and target.tag not in (unit.noticed, unit.order.target_tag):
            unit.noticed = target.tag
            unit.ready_at = max(unit.ready_at, loop + reaction_loops * world.chance.random())
        if not unit.attacks(target):
            unit.aim(target)
            if unit.ready_at <= loop:
                # If the weapon became ready within the last loop, the attack begins at that time.
                # So a unit that fires without a pause keeps exactly the weapon's period.
                start = unit.ready_at if loop - unit.ready_at < 1.0 else float(loop)
                unit.hits_at = start + fired.damage_point_loops
        return unit.hits_at <= loop

    def _approach(self, unit: Unit, target: Unit, way: Way | None) -> Way | None:
        """The way of a unit whose target is out of range; None if the unit must stand still."""
        if unit.rests_until > self._world.loop:
            return None
        if unit.order.kind == _HOLD:  # only the unit's other weapon reaches the target
            return way
        return _way_up(unit, target, self._routes, way)

    def _fire(
        self,
        pairs: Pairs,
        shooter: Unit,
        weapon: WeaponType,
        target: Unit,
        damage: dict[Unit, float],
    ) -> None:
        """Fire a weapon: launch a missile, or add the hits to the damage of this loop."""
        if weapon.splash:  # a weapon with a splash makes the attacker explode
            return
        world = self._world
        least, more = weapon.delay_loops
        now = shooter.hits_at
        started = now - weapon.damage_point_loops
        shooter.fired(
            ready_at=started + weapon.cooldown_loops + least + more * world.chance.random(),
            rests_until=now + weapon.backswing_loops,
        )
        shooter.facing = math.atan2(target.y - shooter.y, target.x - shooter.x) % math.tau
        if weapon.missile_step:
            distance = way_to(shooter, target.x, target.y)[2] - target.type.radius
            lands_at = now + max(0.0, distance) / weapon.missile_step
            self._missiles.append(Missile(lands_at, shooter, target.tag))
            return
        damage[target] = damage.get(target, 0.0) + damage_of(world, shooter, target)
        if weapon.beam:
            for other in beside(pairs.units, shooter, target, weapon.beam):
                damage[other] = damage.get(other, 0.0) + damage_of(world, shooter, other)
        if weapon.blast:
            for other, share in around(pairs.units, shooter, target):
                hits = share * damage_of(world, shooter, other)
                damage[other] = damage.get(other, 0.0) + hits

    def _land(self, damage: dict[Unit, float]) -> None:
        """Let the missiles of this loop hit; drop missiles whose target is dead."""
        world, flying = self._world, []
        for missile in self._missiles:
            target = world.by_tag.get(missile.target_tag)
            if target is None:
                continue
            if missile.lands_at > world.loop:
                flying.append(missile)
            else:
                damage[target] = damage.get(target, 0.0) + damage_of(world, missile.shooter, target)
        self._missiles = flying


def _holds_fire(unit: Unit) -> bool:
    """True if the unit's order does not let it attack."""
    order = unit.order.kind
    return order in _HOLDS_FIRE or (order != _ATTACK and unit.type.passive)


def _way_up(unit: Unit, target: Unit, routes: Routes | None, way: Way | None) -> Way | None:
    """The unit's way to its target; `way` is the way that the unit's order asks for."""
    if routes is None or unit.type.aloft:
        return way_to(unit, target.x, target.y)
    if unit.order.target_tag == target.tag:
        return way
    return routes.way(unit, target.x, target.y, target)


def _choose_target(
    pairs: Pairs, bystanders: Bystanders | None, i: int, weapon: WeaponType
) -> tuple[Unit | None, float]:
    """The target that an armed unit chooses, or None, and the gap to the target."""
    unit, weapon_range = pairs.units[i], weapon.reach
    order = unit.order
    kind = order.kind
    if kind == _ATTACK and order.target_tag:
        return _named(pairs, bystanders, i, order.target_tag)
    if unit.type.works and kind != _ATTACK:
        return None, 0.0
    if unit.engaged:
        kept = pairs.index.get(unit.engaged, -1)
        if kept >= 0:
            gap = pairs.gap(i, kept)
            kept_range = weapon_range if unit.hits_at == NEVER else weapon.longest_range
            if pairs.closest[i] <= gap <= kept_range:
                return pairs.units[kept], gap
    nearest, gap = pairs.nearest_enemy(i)
    reach = weapon_range if kind == _HOLD else pairs.scan[i]
    if unit.chases and gap > weapon_range:
        chased = pairs.index.get(unit.chases, -1)
        if chased >= 0 and not pairs.units[chased].unseen and pairs.gap(i, chased) <= reach:
            return pairs.units[chased], pairs.gap(i, chased)
    if gap <= reach:
        return pairs.units[nearest], gap
    return (None, 0.0) if bystanders is None else bystanders.choose(i, weapon_range, reach)


def _named(
    pairs: Pairs, bystanders: Bystanders | None, i: int, tag: int
) -> tuple[Unit | None, float]:
    """The unit with this tag and the gap to it; None if the unit cannot be attacked now."""
    j = pairs.index.get(tag, -1)
    if j >= 0:
        return pairs.units[j], pairs.gap(i, j)
    target = None if bystanders is None else bystanders.by_tag.get(tag)
    if bystanders is None or target is None or not is_target(pairs.units[i], target):
        return None, 0.0  # the weapon cannot hit, for example, a flying structure
    return target, bystanders.gap(pairs.units[i], target)


class Bystanders:
    """The bystanders of a world, valid until a unit is created or dies, or begins or ends work."""

    def __init__(self, attackers: list[Unit], units: list[Unit]) -> None:
        self._attackers, self._units = attackers, units
        self.by_tag = {unit.tag: unit for unit in units}
        spared = np.array([[not is_target(one, unit) for unit in units] for one in attackers])
        structures = np.array([not unit.type.mobile for unit in units])
        self._ranks = [np.where(spared | later, np.inf, 0.0) for later in (structures, ~structures)]
        """Added to gaps, matrix 1 leaves only workers as targets, and matrix 2 only structures."""
        radius = np.array([unit.type.radius for unit in units])
        self._touch = np.array([one.type.radius for one in attackers])[:, None] + radius
        self._nearest: list[list[tuple[int, float]]] = []

    def measure(self) -> None:
        """Forget the distances of the last loop."""
        self._nearest = []

    def gap(self, attacker: Unit, target: Unit) -> float:
        """Distance between the edges of two units."""
        dx, dy = target.x - attacker.x, target.y - attacker.y
        return float((dx * dx + dy * dy) ** 0.5 - attacker.type.radius - target.type.radius)

    def choose(self, i: int, weapon_range: float, reach: float) -> tuple[Unit | None, float]:
        """The bystander that attacker i chooses (None if no one is in reach), and the gap to it."""
        attacker = self._attackers[i]
        kept = self.by_tag.get(attacker.engaged)
        if kept is not None:
            gap = self.gap(attacker, kept)
            if gap <= weapon_range:
                return kept, gap
        if not self._nearest:
            self._nearest = self._all_nearest()
        for nearest in self._nearest:
            j, gap = nearest[i]
            if gap <= reach:
                return self._units[j], gap
        return None, 0.0

    def _all_nearest(self) -> list[list[tuple[int, float]]]:
        """For each attacker, the nearest worker and the nearest structure."""
        gap = np.sqrt(_between(self._attackers, self._units)) - self._touch
        found = []
        for rank in self._ranks:
            of_rank = gap + rank
            best = of_rank.argmin(axis=1)
            least = of_rank[np.arange(len(best)), best]
            found.append(list(zip(best.tolist(), least.tolist(), strict=True)))
        return found


def _between(attackers: list[Unit], units: list[Unit]) -> NDArray[np.float64]:
    """The squared distance between each attacker and each unit."""
    x = np.array([one.x for one in attackers])[:, None] - np.array([unit.x for unit in units])
    y = np.array([one.y for one in attackers])[:, None] - np.array([unit.y for unit in units])
    return np.asarray(x * x + y * y)


def bystanders_of(world: World) -> Bystanders | None:
    """The bystanders of a world; None if no unit in `World.walkers` is their enemy."""
    walking = set(world.walkers)
    units = [unit for unit in world.units if not unit.type.invulnerable and unit not in walking]
    sides = {unit.owner for unit in units}
    if not any(hostile(one.owner, side) for one in world.walkers for side in sides):
        return None
    return Bystanders(world.walkers, units)
