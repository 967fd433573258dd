"""Cloak: units that their enemies neither see nor attack, unless a detector is near.

Rules of cloak:
* A cloaked unit is unseen unless it is within the range of an enemy's detector, or within an
  enemy's scan. The range is measured between the centres of the two units.
* Detection is checked once a loop, so a detector detects in the loop after its arrival.
* An unseen unit is not a target: enemies stop attacking it, and orders to attack it end.
* Beams and explosions hit unseen units, too, because they are not aimed at a unit.
"""

from __future__ import annotations

from sc2standin.simulation import orders
from sc2standin.simulation.fights.pairs import hostile
from sc2standin.simulation.units import Site, Unit, way_to
from sc2standin.simulation.world import Scan, World


def detect(world: World) -> None:
    """Find out which cloaked units are unseen in this loop."""
    detectors = _detectors(world)
    changed = False
    for unit in world.cloaked:
        unseen = not _is_shown(unit, detectors, world.scans)
        changed |= unseen != unit.unseen
        unit.unseen = unseen
    if changed:
        world.population_version += 1  # the possible targets and the visible units have changed
    hidden = {unit.tag: unit for unit in world.cloaked if unit.unseen}
    if hidden:
        for unit in world.units:
            _lose(world, unit, hidden)


def is_hidden(unit: Unit, player: int) -> bool:
    """True if a player does not see another player's unit because the unit is cloaked."""
    return unit.unseen and unit.owner != player


def is_detected(world: World, unit: Unit) -> bool:
    """True if a unit is within an enemy's detection range or scan."""
    return _is_shown(unit, _detectors(world), world.scans)


def _detectors(world: World) -> list[Unit]:
    return [unit for unit in world.units if unit.type.detection and not isinstance(unit.job, Site)]


def _is_shown(unit: Unit, detectors: list[Unit], scans: list[Scan]) -> bool:
    return any(_detects(one, unit) for one in detectors) or any(
        _shows(scan, unit) for scan in scans
    )


def _detects(detector: Unit, unit: Unit) -> bool:
    near = way_to(detector, unit.x, unit.y)[2] <= detector.type.detection
    return near and hostile(detector.owner, unit.owner)


def _shows(scan: Scan, unit: Unit) -> bool:
    near = way_to(unit, scan.x, scan.y)[2] <= scan.radius
    return near and hostile(scan.owner, unit.owner)


def _lose(world: World, unit: Unit, hidden: dict[int, Unit]) -> None:
    """Let a unit forget hidden enemies as targets of its weapon and of its orders."""

    def is_lost(tag: int) -> bool:
        return tag in hidden and hostile(unit.owner, hidden[tag].owner)

    if is_lost(unit.engaged):
        unit.lower_weapon()
    if any(is_lost(order.target_tag) for order in unit.queue):
        unit.queue[:] = [order for order in unit.queue if not is_lost(order.target_tag)]
    if is_lost(unit.order.target_tag):
        orders.finish(world, unit)
