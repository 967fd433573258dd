"""Combat: target choice and damage.

Rules it keeps:
- a weapon fires if its target is in range, edge to edge, and its cooldown is over; hits land at
  once; all hits of a loop count, including those of units that die in that loop;
- each cooldown is a little shorter or longer, at random, as in the real game: without it two equal
  fights would be one;
- a unit with a move order does not fire; a unit that holds its position does not walk;
- a unit without a named target keeps its current target while that target is in range; otherwise
  it takes the nearest enemy within its scan range. The opponent's units scan as far as they see.
"""

from __future__ import annotations

import math

from sc2pool.standin.data.abilities import OrderKind
from sc2pool.standin.data.unit_types import HIT, WeaponType
from sc2pool.standin.simulation.damage import explode, harm
from sc2pool.standin.simulation.pairs import Pairs
from sc2pool.standin.simulation.world import Unit, Way, World, way_to

SHORTEST_DELAY_LOOPS, LONGEST_DELAY_LOOPS = -1.0, 2.0
"""Bounds of the random part of a cooldown: -0.0625 s and 0.125 s, the weapon data's defaults."""
_DELAY_SPAN_LOOPS = LONGEST_DELAY_LOOPS - SHORTEST_DELAY_LOOPS
_HOLD, _MOVE, _ATTACK = OrderKind.HOLD, OrderKind.MOVE, OrderKind.ATTACK


def fight(world: World, pairs: Pairs, ways: list[Way | None]) -> bool:
    """Choose targets and fire the weapons that are ready; true if any unit has a target.

    Changes the way of each unit with a target: it stands if the target is in range, otherwise it
    walks to it.
    """
    fights = False
    shots: list[tuple[Unit, WeaponType, Unit]] = []
    for i, unit in enumerate(pairs.units):
        weapon = unit.type.weapon
        if weapon is None or unit.order.kind == _MOVE:
            unit.engaged = 0
            continue
        j, gap = _choose_target(pairs, i, weapon.range)
        if j < 0:
            unit.engaged = 0
            continue
        fights = True
        target = pairs.units[j]
        if gap > weapon.range:
            unit.engaged = 0
            ways[i] = way_to(unit, target.x, target.y)
            continue
        unit.engaged = target.tag
        ways[i] = None
        if unit.ready_at <= world.loop:
            shots.append((unit, weapon, target))
    if shots:
        _fire(world, pairs, shots)
    return fights


def _choose_target(pairs: Pairs, i: int, weapon_range: float) -> tuple[int, float]:
    """The target of an armed unit that has no move order, and the gap to it; -1 for none."""
    unit = pairs.units[i]
    order = unit.order
    kind = order.kind
    if kind == _ATTACK and order.target_tag:
        named = pairs.index.get(order.target_tag, -1)
        return named, pairs.gap(i, named) if named >= 0 else 0.0
    if unit.engaged:
        kept = pairs.index.get(unit.engaged, -1)
        if kept >= 0:
            gap = pairs.gap(i, kept)
            if gap <= weapon_range:
                return kept, gap
    nearest, gap = pairs.nearest_enemy(i)
    reach = weapon_range if kind == _HOLD else pairs.scan[i]
    return (nearest, gap) if gap <= reach else (-1, 0.0)


def _fire(world: World, pairs: Pairs, shots: list[tuple[Unit, WeaponType, Unit]]) -> None:
    damage: dict[Unit, float] = {}
    exploding: list[Unit] = []
    random = world.chance.random
    for shooter, weapon, target in shots:
        if weapon.splash:
            exploding.append(shooter)
            continue
        damage[target] = damage.get(target, 0.0) + HIT[shooter.type, target.type]
        # A weapon that became ready within the last loop keeps the fraction of a loop that it
        # waited, so that continuous fire has exactly the weapon's period.
        ready = shooter.ready_at
        start = ready if world.loop - ready < 1.0 else float(world.loop)
        delay = SHORTEST_DELAY_LOOPS + _DELAY_SPAN_LOOPS * random()
        shooter.ready_at = start + weapon.cooldown_loops + delay
        shooter.facing = math.atan2(target.y - shooter.y, target.x - shooter.x) % math.tau
    for target, hits in damage.items():
        if harm(world, target, hits):
            exploding.append(target)
    if exploding:
        explode(world, pairs.units, exploding)
