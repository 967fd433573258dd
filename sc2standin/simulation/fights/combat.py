"""Combat: target choice and damage.

Rules it keeps:
- a weapon fires if its target is in range, edge to edge, and its cooldown is over; hits land at
  once; all hits of a loop count, including those of units that die in that loop;
- each cooldown is a little shorter or longer, at random, as in the real game: without it two equal
  fights would be one;
- a unit with an order to move or to cast does not fire; a unit that holds its position does not
  walk; a passive unit fires only with an attack order;
- a unit without a named target keeps its current target while that target is in range; otherwise
  it takes the nearest enemy within its scan range, and a bystander if there is no other. The
  opponent's units scan as far as they see;
- of two weapons the one is fired that can hit the target, or that does more damage;
- a worker only attacks if it is ordered to.
"""

from __future__ import annotations

import math

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types import WeaponType
from sc2standin.simulation.fights.bystanders import Bystanders
from sc2standin.simulation.fights.damage import around, beside, damage_of, explode, harm
from sc2standin.simulation.fights.pairs import Pairs, is_target
from sc2standin.simulation.paths.routes import Routes
from sc2standin.simulation.units import Unit, Way, way_to
from sc2standin.simulation.world import World

_HOLD, _ATTACK = OrderKind.HOLD, OrderKind.ATTACK
_HOLDS_FIRE = (OrderKind.MOVE, OrderKind.CAST)


def fight(
    world: World,
    pairs: Pairs,
    bystanders: Bystanders | None,
    routes: Routes | None,
    ways: list[Way | None],
) -> bool:
    """Choose targets and fire the weapons that are ready; true if any unit has a target.

    Changes the way of each unit with a target: it stands if the target is in range, otherwise it
    walks to it.
    """
    fights = False
    if bystanders is not None:
        bystanders.measure()
    shots: list[tuple[Unit, WeaponType, Unit]] = []
    loop, reaction_loops = world.loop, world.reaction_loops
    for i, (unit, weapon) in enumerate(zip(pairs.units, pairs.weapons, strict=True)):
        order = unit.order.kind
        if weapon is None or order in _HOLDS_FIRE or (order != _ATTACK and unit.type.passive):
            unit.engaged = 0
            continue
        target, gap = _choose_target(pairs, bystanders, i, weapon.reach)
        if target is None:
            unit.engaged = 0
            continue
        fights = True
        fired = weapon if weapon.other is None else weapon.against(target.type)
        if gap < pairs.closest[i]:
            unit.engaged = 0
            continue
        if gap > fired.range:
            unit.engaged = 0
            if order != _HOLD:  # if it holds, only its other weapon reaches as far
                ways[i] = _way_up(unit, target, routes, ways[i])
            continue
        unit.engaged = target.tag
        ways[i] = None
        if reaction_loops and target.tag not in (unit.noticed, unit.order.target_tag):
            unit.noticed = target.tag
            unit.ready_at = max(unit.ready_at, loop + reaction_loops * world.chance.random())
        if unit.ready_at <= loop:
            shots.append((unit, fired, target))
    if shots:
        _fire(world, pairs, shots)
    return fights


def _way_up(unit: Unit, target: Unit, routes: Routes | None, way: Way | None) -> Way | None:
    """The way of a unit to its target; it is on its way to one that it is ordered to attack."""
    if routes is None or unit.type.aloft:
        return way_to(unit, target.x, target.y)
    if unit.order.target_tag == target.tag:
        return way
    return routes.way(unit, target.x, target.y, target)


def _choose_target(
    pairs: Pairs, bystanders: Bystanders | None, i: int, weapon_range: float
) -> tuple[Unit | None, float]:
    """The target of an armed unit that has no move order, and the gap to it; or None."""
    unit = pairs.units[i]
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
            if pairs.closest[i] <= gap <= weapon_range:
                return pairs.units[kept], gap
    nearest, gap = pairs.nearest_enemy(i)
    reach = weapon_range if kind == _HOLD else pairs.scan[i]
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


def _fire(world: World, pairs: Pairs, shots: list[tuple[Unit, WeaponType, Unit]]) -> None:
    damage: dict[Unit, float] = {}
    exploding: list[Unit] = []
    random = world.chance.random
    for shooter, weapon, target in shots:
        if weapon.splash:
            exploding.append(shooter)
            continue
        damage[target] = damage.get(target, 0.0) + damage_of(world, shooter, target)
        if weapon.beam:
            for other in beside(pairs.units, shooter, target, weapon.beam):
                damage[other] = damage.get(other, 0.0) + damage_of(world, shooter, other)
        if weapon.blast:
            for other, share in around(pairs.units, shooter, target):
                hits = share * damage_of(world, shooter, other)
                damage[other] = damage.get(other, 0.0) + hits
        # A weapon that became ready within the last loop keeps the fraction of a loop that it
        # waited, so that continuous fire has exactly the weapon's period.
        ready = shooter.ready_at
        start = ready if world.loop - ready < 1.0 else float(world.loop)
        least, more = weapon.delay_loops
        shooter.ready_at = start + weapon.cooldown_loops + least + more * random()
        shooter.facing = math.atan2(target.y - shooter.y, target.x - shooter.x) % math.tau
    for target, hits in damage.items():
        if harm(world, target, hits):
            exploding.append(target)
    if exploding:
        explode(world, pairs.units, exploding)
