"""Damage: what hits and explosions take from a unit.

Rules it keeps:
- damage takes the shields first, then the life; a unit without life dies at the end of the loop;
- the units of a player in god mode take none;
- a beam also hits the target's neighbours, on a line across the shot;
- a unit whose weapon has a splash explodes once, when it attacks or when damage kills it, and dies;
  the explosion hits all its enemies within the splash, and may kill one that explodes in turn.
"""

from __future__ import annotations

from sc2pool.standin.data.unit_types import HIT
from sc2pool.standin.simulation.fights.pairs import TINY, hostile, is_target
from sc2pool.standin.simulation.world import ME, Unit, World, way_to


def harm(world: World, target: Unit, damage: float) -> bool:
    """Take damage from a unit; True if this kills a unit that explodes."""
    if target.owner in world.gods:
        return False
    to_shields = min(damage, target.shields)
    to_life = min(damage - to_shields, max(target.life, 0.0))
    target.hit_at = world.loop + 1  # the loop that this one becomes
    target.shields -= to_shields
    target.life -= to_life
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
    """The other enemies that a beam hits: across the shot, within `reach` of the target."""
    x, y, length = way_to(shooter, target.x, target.y)
    x, y = x / max(length, TINY), y / max(length, TINY)
    found = []
    for unit in units:
        off_x, off_y = unit.x - target.x, unit.y - target.y
        along, across = abs(off_x * x + off_y * y), abs(off_x * y - off_y * x)
        radius = unit.type.radius
        near = along <= radius and across - radius <= reach
        if near and unit is not target and is_target(shooter, unit):
            found.append(unit)
    return found


def explode(world: World, units: list[Unit], exploding: list[Unit]) -> None:
    """Let units explode among these units; `exploding` may name one twice."""
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
                and harm(world, unit, HIT[bomb.type, unit.type])
            ):
                exploding.append(unit)
