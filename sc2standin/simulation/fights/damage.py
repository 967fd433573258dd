"""Damage and healing: the effects of hits, explosions, medivacs and time on a unit.

Rules of damage:
* Damage reduces the shields first, then the life. A unit without life dies at the end of the loop.
* An attack has one hit or several hits. Armor reduces the damage of each hit to the life. Shield
  levels reduce the damage of each hit to the shields. Every attack of a loop is computed with the
  shields that the target had before the loop.
* The units of a player in god mode take no damage.
* A beam hits the target, and the target's neighbours on a line across the shot.
* A blast hits all units around the target, the attacker's own units included. The nearest units
  take most damage.
* A unit whose weapon has a splash explodes once, when it attacks or when damage kills it, and dies.
  The explosion hits all enemies within the splash radius, which may then explode, too.

Medivacs use energy to heal wounded biological units of their side. A medivac that is ordered to
heal a unit follows this unit until the unit is healed. Without an order to heal, a healer that
stands or attacks heals the nearest wounded unit within its scan range. A passive healer heals only
by order.

Shields, and the life of some unit types, regenerate after a while without a hit. Energy always
regenerates, and so does the life of certain unit types. Regeneration is added loop by loop, so
that the sums do not depend on the sizes of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import sqrt

from s2clientprotocol import debug_pb2 as debug_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types.kinds import BIOLOGICAL, MIN_HIT
from sc2standin.data.upgrades import Blows, Levels, blows, upgraded_hit
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import TINY, Pairs, hostile, is_target
from sc2standin.simulation.units import Unit, Way, way_to
from sc2standin.simulation.world import World

BEAM_RADIUS = 0.15
"""Half the width of a colossus' beam, in cells, from the effect `ThermalLancesE` of the game."""


def damage_of(world: World, shooter: Unit, target: Unit) -> float:
    """The damage of one attack of a unit on another one, as the sum of all its hits."""
    attack = world.upgrades.levels_of(shooter.owner, shooter.type).attack
    levels = world.upgrades.levels_of(target.owner, target.type)
    if target.shields > 0.0:
        return _on_shields(blows(shooter.type, attack, target.type), target, levels)
    return upgraded_hit(shooter.type, attack, target.type, levels.armor_points)


def _on_shields(attack: Blows, target: Unit, levels: Levels) -> float:
    """The damage of one attack on a unit with shields, as the sum of all its hits."""
    armor = target.type.armor + levels.armor_points
    shields, on_life = target.shields, 0.0
    for _blow in range(attack.times):
        rest = attack.damage
        if shields > 0.0:
            through = max(MIN_HIT, rest - levels.shields) - shields
            shields, rest = max(-through, 0.0), max(through, 0.0)
        if rest > 0.0:
            on_life += max(MIN_HIT, rest - armor)
    return target.shields - shields + on_life


def harm(world: World, target: Unit, damage: float) -> bool:
    """Do damage to a unit; True if this kills a unit that explodes."""
    if (target.owner, debug_pb.god) in world.cheats:
        return False
    if target.type.hallucination:
        damage *= 2.0
    to_shields = min(damage, target.shields)
    to_life = min(damage - to_shields, max(target.life, 0.0))
    target.hit_at = world.loop + 1  # `world.loop` counts this loop only at its end
    target.shields -= to_shields
    target.life -= to_life
    if target.owner in world.clients:
        world.news.alert_of_attack(target, world.loop)
    losses = world.losses_of(target.owner)
    losses.life += to_life
    losses.shields += to_shields
    if target.life > 0.0:
        return False
    world.doomed.append(target.tag)
    weapon = target.type.weapon
    return to_life > 0.0 and weapon is not None and weapon.splash > 0.0


def beside(units: list[Unit], shooter: Unit, target: Unit, reach: float) -> list[Unit]:
    """The enemies that a beam hits besides the target, up to `reach` to each side of the shot."""
    x, y, length = way_to(shooter, target.x, target.y)
    x, y = x / max(length, TINY), y / max(length, TINY)
    found = []
    for unit in units:
        off_x, off_y = unit.x - target.x, unit.y - target.y
        along, across = abs(off_x * x + off_y * y), abs(off_x * y - off_y * x)
        beyond = max(0.0, across - reach)
        near = sqrt(along * along + beyond * beyond) <= BEAM_RADIUS + unit.type.radius
        if near and unit is not target and is_target(shooter, unit):
            found.append(unit)
    return found


def around(units: list[Unit], shooter: Unit, target: Unit) -> Iterator[tuple[Unit, float]]:
    """The units of any owner that a blast hits besides the target, with their share of damage."""
    weapon = shooter.type.weapon
    if weapon is None:
        return
    for unit in units:
        if unit is target or unit is shooter or not weapon.hits(unit.type):
            continue
        edge = way_to(target, unit.x, unit.y)[2] - unit.type.radius
        for radius, share in weapon.blast:
            if edge <= radius:
                yield unit, share
                break


def explode(world: World, units: list[Unit], exploding: list[Unit]) -> None:
    """Let each exploding unit hit its enemies in `units`; `exploding` may contain a unit twice."""
    exploded: set[Unit] = set()
    while exploding:
        bomb = exploding.pop()
        weapon = bomb.type.weapon
        if bomb in exploded or weapon is None:
            continue
        exploded.add(bomb)
        bomb.life = 0.0
        world.doomed.append(bomb.tag)
        for unit in units:
            if (
                hostile(bomb.owner, unit.owner)
                and way_to(bomb, unit.x, unit.y)[2] - unit.type.radius <= weapon.splash
                and harm(world, unit, damage_of(world, bomb, unit))
            ):
                exploding.append(unit)


SCAN_MARGIN = 2.0
"""A healer's scan range is the range of its ability plus this number of cells."""
_BY_ITSELF = (OrderKind.IDLE, OrderKind.ATTACK, OrderKind.PATROL, OrderKind.SCAN_MOVE)


def heal(world: World, pairs: Pairs, ways: list[Way | None]) -> bool:
    """Let healers heal for one loop; True if one of them has a unit to heal.

    Changes `ways`: a healer stands if the unit to heal is in range, and otherwise walks to it.
    """
    heals = False
    for i in pairs.healers:
        unit, ability = pairs.units[i], pairs.units[i].type.heals
        patient, gap = _patient(world, pairs, i)
        if ability is None or patient is None:
            continue
        heals = True
        if gap > ability.range:
            ways[i] = way_to(unit, patient.x, patient.y)
            continue
        ways[i] = None
        affordable = unit.energy * ability.life_per_energy
        life = min(ability.life_per_loop, patient.type.life - patient.life, affordable)
        world.heal(patient, life)
        unit.energy -= life / ability.life_per_energy
    return heals


def is_wounded(unit: Unit) -> bool:
    """True if the unit can be healed."""
    return unit.life < unit.type.life and BIOLOGICAL in unit.type.attributes


def _patient(world: World, pairs: Pairs, i: int) -> tuple[Unit | None, float]:
    """The unit that a healer chooses to heal, or None, and the gap to the unit."""
    unit = pairs.units[i]
    order, ability = unit.order, unit.type.heals
    if order.kind == OrderKind.HEAL:
        named = world.by_tag.get(order.target_tag)
        j = pairs.index.get(order.target_tag, -1)
        if named is None or j < 0 or not is_wounded(named):
            orders.finish(world, unit)
            return None, 0.0
        return named, pairs.gap(i, j)
    if unit.type.passive or ability is None or order.kind not in _BY_ITSELF or unit.energy <= 0.0:
        return None, 0.0
    nearest, least = None, math.inf
    for j, other in enumerate(pairs.units):
        if other.owner == unit.owner and is_wounded(other):
            gap = pairs.gap(i, j)
            if gap < least:
                nearest, least = other, gap
    return (nearest, least) if least <= ability.range + SCAN_MARGIN else (None, 0.0)


CALM_LOOPS = 160
"""For this many loops after a hit, shields do not regenerate: 10 s at 16 loops per second."""
SHIELDS_PER_LOOP = 0.125
"""Shields that regenerate in a loop: 2 per second of 16 loops."""
ENERGY_PER_LOOP = 0.5625 / LOOPS_PER_DATA_S
"""Energy that regenerates in a loop."""


def recover(units: list[Unit], loop: int, loops: int) -> None:
    """Let units regenerate for `loops` loops; the last loop has the number `loop`."""
    for unit in units:
        kind = unit.type
        if unit.shields < kind.shields:
            calm_loops = _calm_loops(unit, loop, loops, CALM_LOOPS)
            unit.shields = _risen(unit.shields, kind.shields, SHIELDS_PER_LOOP, calm_loops)
        if kind.life_per_s and unit.life < kind.life:
            delay_loops = int(kind.life_delay_s * LOOPS_PER_DATA_S)
            calm_loops = _calm_loops(unit, loop, loops, delay_loops) if delay_loops else loops
            unit.life = _risen(unit.life, kind.life, kind.life_per_s / LOOPS_PER_DATA_S, calm_loops)
        if unit.energy < kind.energy:
            unit.energy = _risen(unit.energy, kind.energy, ENERGY_PER_LOOP, loops)


def _calm_loops(unit: Unit, loop: int, loops: int, delay_loops: int) -> int:
    """The number of the last `loops` loops in which the delay after the last hit is over."""
    return loop - max(loop - loops, unit.hit_at + delay_loops)


def _risen(value: float, most: float, per_loop: float, loops: int) -> float:
    for _ in range(loops):
        value = min(most, value + per_loop)
    return value
