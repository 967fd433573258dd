"""A melee: two towns, each at one of the map's two starts; the side without structures loses."""

from __future__ import annotations

from dataclasses import dataclass

from sc2standin.map_reader.fields import Fields, Point

OFFSETS = (
    (-3.0, -3.0),
    (-3.0, -2.0),
    (-3.0, -1.0),
    (-3.0, 0.0),
    (-3.0, 1.0),
    (-3.0, 2.0),
    (-3.0, 3.0),
    (-2.0, 3.0),
    (-1.0, 3.0),
    (0.0, 3.0),
    (1.0, 3.0),
    (2.0, 3.0),
)
"""Where the first workers stand, from the command centre, if minerals lie to the left and above."""


@dataclass(frozen=True)
class MeleeRules:
    """Where the players begin."""

    starts: tuple[Point, Point]
    """The client begins at one of them, drawn at random, and the computer at the other."""
    any_race: bool = False
    """True if Zerg and Protoss may join, with the town of a Terran."""


def read_melee(fields: Fields) -> MeleeRules:
    """The melee that a map file describes."""
    one, other = fields.points("starts", 2)
    any_race = fields.flag("any_race")
    fields.finish()
    return MeleeRules((one, other), any_race)
