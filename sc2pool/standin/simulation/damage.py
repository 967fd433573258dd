"""Damage: what hits and explosions take from a unit.

Rules it keeps:
- damage takes the shields first, then the life; a unit without life dies at the end of the loop;
- a unit whose weapon has a splash explodes once, when it attacks or when damage kills it, and dies;
  the explosion hits all its enemies within the splash, and may kill one that explodes in turn.
"""

from __future__ import annotations

from sc2pool.standin.data.unit_types import HIT
from sc2pool.standin.simulation.pairs import hostile
from sc2pool.standin.simulation.world import ME, Unit, World, way_to


def harm(world: World, target: Unit, damage: float) -> bool:
    """Take damage from a unit; True if this kills a unit that explodes."""
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
