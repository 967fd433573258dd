"""Healing and regeneration of life, shields and energy.

Medivacs use energy to heal wounded biological units of their side. Rules: a unit that is ordered to
heal another one follows it until it is healed. Without such an order a healer that stands or
attacks heals the nearest wounded unit within its scan range. A passive healer heals only by order.

Shields regenerate when a unit was not hit for a while; so does the life of some types. The life of
other types and energy always regenerate. Rule: sums are computed loop by loop, so that steps of any
size give the same numbers.
"""

from __future__ import annotations

import math

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types import BIOLOGICAL
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import Pairs
from sc2standin.simulation.units import Unit, Way, way_to
from sc2standin.simulation.world import World

SCAN_MARGIN = 2.0
"""The scan range is the range of the ability plus this, in cells."""
_BY_ITSELF = (OrderKind.IDLE, OrderKind.ATTACK, OrderKind.PATROL, OrderKind.SCAN_MOVE)


def heal(world: World, pairs: Pairs, ways: list[Way | None]) -> bool:
    """Let the healers of a loop heal; True if one of them has a patient.

    Changes the way of each healer with a patient: it stands if the patient is in range, and
    otherwise walks to the patient.
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
    """The unit to heal, or None, and the gap to it."""
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
"""Loops after the last hit in which shields do not regenerate: 10 s at 16 loops per second."""
SHIELDS_PER_LOOP = 0.125
"""Shields that regenerate in a loop: 2 per second of 16 loops."""
ENERGY_PER_LOOP = 0.5625 / LOOPS_PER_DATA_S
"""Energy that regenerates in a loop."""


def recover(units: list[Unit], loop: int, loops: int) -> None:
    """Regenerate the units for `loops` loops, the last of which is `loop`."""
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
    """How many of the last `loops` loops came at least `delay_loops` after the unit's last hit."""
    return loop - max(loop - loops, unit.hit_at + delay_loops)


def _risen(value: float, most: float, per_loop: float, loops: int) -> float:
    for _ in range(loops):
        value = min(most, value + per_loop)
    return value
