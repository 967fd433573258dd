"""Combat: target choice and damage.

Rules it keeps:
- an attack begins if the target is in range, edge to edge, and the cooldown is over; its damage, or
  its missile, comes at the weapon's damage point, unless the target is dead, hidden or further away
  than the weapon's slop, or the unit does something else by then: that costs no cooldown;
- after it the unit stands for its backswing, unless the next target is in range or a client orders
  it to move; a missile flies to its target wherever that goes;
- all hits of a loop count, including those of units that die in that loop;
- each cooldown is a little shorter or longer, at random, as in the real game: without it two equal
  fights would be one;
- a unit with an order to move or to cast does not fire; a unit that holds its position does not
  walk; a passive unit fires only with an attack order;
- a unit without a named target keeps its current target while that target is in range, and goes on
  after one that is not until another one is; otherwise it takes the nearest enemy within its scan
  range, and a bystander if there is no other. The opponent's units scan as far as they see;
- of two weapons the one is fired that can hit the target, or that does more damage;
- a worker only attacks if it is ordered to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types import WeaponType
from sc2standin.simulation.fights.bystanders import Bystanders
from sc2standin.simulation.fights.damage import around, beside, damage_of, explode, harm
from sc2standin.simulation.fights.pairs import Pairs, is_target
from sc2standin.simulation.paths.routes import Routes
from sc2standin.simulation.units import NEVER, Unit, Way, way_to
from sc2standin.simulation.world import World

_HOLD, _ATTACK = OrderKind.HOLD, OrderKind.ATTACK
_HOLDS_FIRE = (OrderKind.MOVE, OrderKind.CAST)
_NOBODY = (None, 0.0)


class Missile(NamedTuple):
    """A missile in the air."""

    lands_at: float
    """When it comes to its target, in loops."""
    shooter: Unit
    target_tag: int


class Combat:
    """The fights of one episode."""

    def __init__(self, world: World, routes: Routes | None) -> None:
        self._world, self._routes = world, routes
        self._missiles: list[Missile] = []
        """Those in the air, in the order of their launch."""

    def fight(self, pairs: Pairs, bystanders: Bystanders | None, ways: list[Way | None]) -> bool:
        """Choose targets, attack and let missiles land; true if anything of it goes on.

        Changes the way of each unit with a target: it stands if the target is in range, otherwise
        it walks to it.
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
        """Begin an attack if the weapon is ready, or go on with it; true at its damage point."""
        world = self._world
        loop, reaction_loops = world.loop, world.reaction_loops
        if reaction_loops and target.tag not in (unit.noticed, unit.order.target_tag):
            unit.noticed = target.tag
            unit.ready_at = max(unit.ready_at, loop + reaction_loops * world.chance.random())
        if not unit.attacks(target):
            unit.aim(target)
            if unit.ready_at <= loop:
                # A weapon that became ready within the last loop keeps the fraction of a loop that
                # it waited, so that continuous fire has exactly the weapon's period.
                start = unit.ready_at if loop - unit.ready_at < 1.0 else float(loop)
                unit.hits_at = start + fired.damage_point_loops
        return unit.hits_at <= loop

    def _approach(self, unit: Unit, target: Unit, way: Way | None) -> Way | None:
        """The way of a unit whose target is too far away, None if it stands."""
        if unit.rests_until > self._world.loop:
            return None
        if unit.order.kind == _HOLD:  # only its other weapon reaches as far
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
        """Fire a weapon: what hits at once is added to the damage of this loop."""
        if weapon.splash:  # it explodes
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
        """Let the missiles hit whose time has come; those whose target is dead hit nothing."""
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
    """The way of a unit to its target; it is on its way to one that it is ordered to attack."""
    if routes is None or unit.type.aloft:
        return way_to(unit, target.x, target.y)
    if unit.order.target_tag == target.tag:
        return way
    return routes.way(unit, target.x, target.y, target)


def _choose_target(
    pairs: Pairs, bystanders: Bystanders | None, i: int, weapon: WeaponType
) -> tuple[Unit | None, float]:
    """The target of an armed unit that has no move order, and the gap to it; or None."""
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
    """The target with a tag, and the gap to it; None if it cannot be attacked now."""
    j = pairs.index.get(tag, -1)
    if j >= 0:
        return pairs.units[j], pairs.gap(i, j)
    target = None if bystanders is None else bystanders.by_tag.get(tag)
    if bystanders is None or target is None or not is_target(pairs.units[i], target):
        return None, 0.0  # it may have lifted off
    return target, bystanders.gap(pairs.units[i], target)
