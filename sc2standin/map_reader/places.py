"""The places of a map file, at which groups of units are put; and its ground.

A place is a name (`random`, `side`, `opposite`) or an object with a `kind`; its other keys are the
fields of the kind's class. Coordinates are map coordinates, distances are in cells.

Ground that is not flat has one character for each cell, the top row first:

    #       no ground: cliffs and chasms
    0 to 9  open ground on this level, on which structures can stand
    a to z  a ramp: walkable, but not for structures; each letter is a little higher

Level d has the height BASE + 16 d, as in the real game; letter number n has BASE + 2 n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sc2standin.map_reader.fields import Fields, Point, Region, ScenarioError

Side = Literal["side", "opposite"]
Named = Literal["random", "side", "opposite"]


@dataclass(frozen=True)
class Circle:
    """Places evenly around a centre, counter-clockwise from the first angle."""

    centre: Point
    radius: float
    first_degrees: float


@dataclass(frozen=True)
class Ring:
    """Random places around a centre, between two distances."""

    centre: Point
    inner: float
    outer: float


@dataclass(frozen=True)
class Scatter:
    """Random places in a region, outside of a disc.

    Each unit is at least `apart` from its owner's other units, and `from_player` from the client's.
    """

    region: Region
    hole_centre: Point
    hole_radius: float
    apart: float
    from_player: float


@dataclass(frozen=True)
class Column:
    """A vertical line with its middle at a random point of one of two regions.

    Columns of one wave on the same side have the same middle. With a spacing of 0 all units are at
    one point.
    """

    side: Side
    spacing: float
    regions: tuple[Region, Region]


@dataclass(frozen=True)
class Points:
    """One of several lists of points, drawn at random."""

    choices: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Cluster:
    """Places side by side around a centre, as close as the sizes of all units there allow.

    Player 2's places are player 1's, rotated by 180 degrees, so that equal sides are equal.
    """

    centre: Point


Place = Named | Circle | Ring | Scatter | Column | Points | Cluster


def read_place(fields: Fields, key: str) -> Place:
    """The place under this key."""
    part = fields.part_or_none(key)
    if part is None:
        return fields.one_of(key, _NAMED)
    place = part.one_of("kind", _KINDS)(part)
    part.finish()
    return place


def _circle(fields: Fields) -> Circle:
    return Circle(
        centre=fields.point("centre"),
        radius=fields.distance("radius"),
        first_degrees=fields.number("first_degrees", 360),
    )


def _ring(fields: Fields) -> Ring:
    return Ring(
        centre=fields.point("centre"),
        inner=fields.distance("inner"),
        outer=fields.distance("outer"),
    )


def _scatter(fields: Fields) -> Scatter:
    return Scatter(
        region=fields.region("region"),
        hole_centre=fields.point("hole_centre"),
        hole_radius=fields.distance("hole_radius"),
        apart=fields.distance("apart"),
        from_player=fields.distance("from_player"),
    )


def _column(fields: Fields) -> Column:
    return Column(
        side=fields.one_of("side", _SIDES),
        spacing=fields.distance("spacing"),
        regions=(fields.region("left"), fields.region("right")),
    )


def _points(fields: Fields) -> Points:
    return Points(fields.lists_of_points("choices"))


def _cluster(fields: Fields) -> Cluster:
    return Cluster(centre=fields.point("centre"))


_NAMED: dict[str, Named] = {"random": "random", "side": "side", "opposite": "opposite"}
_SIDES: dict[str, Side] = {"side": "side", "opposite": "opposite"}
_KINDS: dict[str, Callable[[Fields], Place]] = {
    "circle": _circle,
    "ring": _ring,
    "scatter": _scatter,
    "column": _column,
    "points": _points,
    "cluster": _cluster,
}


BASE, A_LEVEL, A_LETTER = 191, 16, 2
"""Height bytes: the height of level 0, and the steps between two levels and two letters."""
CLIFF = 127
"""The height byte of cells without ground."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The cells of a map, as (y, x) with y up."""

    walkable: NDArray[np.bool_]
    buildable: NDArray[np.bool_]
    height: NDArray[np.uint8]


def read_ground(fields: Fields, size: tuple[int, int]) -> Ground | None:
    """The ground of a map; None if the map is flat."""
    rows = fields.rows("ground", size)
    if rows is None:
        return None
    cells = np.array([[ord(letter) for letter in row] for row in reversed(rows)])
    level, ramp = _between(cells, "0", "9"), _between(cells, "a", "z")
    if not (level | ramp | (cells == ord("#"))).all():
        raise ScenarioError("map.ground must be made of #, 0 to 9, and a to z")
    height = np.full(cells.shape, CLIFF)
    height[level] = BASE + A_LEVEL * (cells[level] - ord("0"))
    height[ramp] = BASE + A_LETTER * (cells[ramp] - ord("a"))
    if height.max() > 255:
        raise ScenarioError("map.ground is too high: the highest level is 4")
    return Ground(level | ramp, level, height.astype(np.uint8))


def _between(cells: NDArray[np.int_], low: str, high: str) -> NDArray[np.bool_]:
    return np.asarray((cells >= ord(low)) & (cells <= ord(high)))
