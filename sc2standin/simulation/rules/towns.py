"""The towns of a melee at its beginning: a command centre and twelve workers for each player."""

from __future__ import annotations

from sc2standin.data.unit_types import COMMAND_CENTER, SCV
from sc2standin.map_reader.scenario import OFFSETS, MeleeRules
from sc2standin.simulation.rules.placement import Placement
from sc2standin.simulation.units import Point, Unit
from sc2standin.simulation.world import World


def found_towns(
    world: World, rules: MeleeRules, placement: Placement, players: tuple[int, ...]
) -> tuple[Point, Point]:
    """Create the players' towns; returns the starts, the client's first.

    The workers stand on the two sides of the command centre that face the minerals.
    """
    one, other = rules.starts
    starts = (one, other) if placement.side == 0 else (other, one)
    for owner, (x, y) in zip(players, starts, strict=False):
        world.spawn(COMMAND_CENTER, owner, [(x, y)])
        fields = fields_near(world, (x, y))
        to_x = -1.0 if sum(field.x - x for field in fields) > 0 else 1.0
        to_y = 1.0 if sum(field.y - y for field in fields) > 0 else -1.0
        world.spawn(SCV, owner, [(x + dx * to_x, y + dy * to_y) for dx, dy in OFFSETS])
    return starts


def fields_near(world: World, place: Point) -> list[Unit]:
    """The mineral fields within 10 cells of a place, the nearest first."""
    x, y = place
    fields = [
        (abs(unit.x - x) ** 2 + abs(unit.y - y) ** 2, unit.tag, unit)
        for unit in world.units
        if unit.type.has_minerals
    ]
    return [unit for square, _tag, unit in sorted(fields, key=lambda one: one[:2]) if square < 100]
