"""Damage: the effect of hits and explosions on a unit.

Rules it keeps:
- Damage reduces the shields first, then the life. A unit without life dies at the end of the loop.
- Armor reduces the damage of each blow to the life, and shield levels that to the shields. For all
  attacks of a loop the shields are those before the loop.
- The units of a player in god mode take no damage.
- A beam also hits the target's neighbours, on a line across the shot.
- A blast hits all units around the target, also own ones; the nearest units take most damage.
- A unit whose weapon has a splash explodes once, when it attacks or when damage kills it, and dies.
  The explosion hits all its enemies within the splash, which may explode in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from s2clientprotocol import debug_pb2 as debug_pb

from sc2standin.data.unit_types import HIT, MIN_HIT
from sc2standin.data.upgrades import Blows, Levels, blows, upgraded_hit
from sc2standin.simulation.fights.pairs import TINY, hostile, is_target
from sc2standin.simulation.units import ME, Unit, way_to
from sc2standin.simulation.world import World

BEAM_RADIUS = 0.15
"""Half the width of a colossus' beam, in cells: `ThermalLancesE` of the game's effects."""


def damage_of(world: World, shooter: Unit, target: Unit) -> float:
    """Damage of one whole attack of a unit on another one."""
    upgrades = world.upgrades
    shielded = target.shields > 0.0
    if not upgrades.count and not shielded:
        return HIT[shooter.type, target.type]
    attack = upgrades.levels_of(shooter.owner, shooter.type).attack
    levels = upgrades.levels_of(target.owner, target.type)
    if shielded:
        return _on_shields(blows(shooter.type, attack, target.type), target, levels)
    return upgraded_hit(shooter.type, attack, target.type, levels.armor_points)


def _on_shields(attack: Blows, target: Unit, levels: Levels) -> float:
    """Damage of one whole attack on a unit with shields."""
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
    target.hit_at = world.loop + 1  # the number of this loop once it is over
    target.shields -= to_shields
    target.life -= to_life
    if target.owner in world.clients:
        world.news.alert_of_attack(target, world.loop)
    ledger = world.ledger
    if target.owner == ME:
        ledger.taken_life += to_life
        ledger.taken_shields += to_shields
    else:
        ledger.dealt_life += to_life
        ledger.dealt_shields += to_shields
    if target.life > 0.0:
        return False
    world.doomed.append(target.tag)
    weapon = target.type.weapon
    return to_life > 0.0 and weapon is not None and weapon.splash > 0.0


def beside(units: list[Unit], shooter: Unit, target: Unit, reach: float) -> list[Unit]:
    """Further enemies that a beam hits: across the shot, `reach` to both sides of the target."""
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
    """Further units of any owner that a shot with a blast hits, and their shares of its damage."""
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
    """Let units explode among these units; `exploding` may contain a unit twice."""
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
