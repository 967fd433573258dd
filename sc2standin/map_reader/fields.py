"""Reads the JSON objects of a map file key by key, and the map's places and ground.

A wrong, missing or unknown key is an error that says where in the file the key is.

A map file puts each group of units at a place. A place is a name (`random`, `side`, `opposite`) or
an object. A place's key `kind` names a class of this file, in lower case. A place's other keys are
the fields of the class. Coordinates are map coordinates. Distances are in cells.

Ground that is not flat has one character for each cell, the top row first:
* The character # means no ground: cliffs and chasms.
* The digit d (0 to 9) means open ground on level d, on which structures can stand.
* The letters a to z mean ramps, from low to high. Structures cannot stand on ramps.

The digit d means the height BASE + 16 d, as in the real game. The letter number n (a has number 0)
means the height BASE + 2 n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sc2standin.cost import MAX_MS

MAX_SIDE_CELLS = 256
"""The real game's limit for the width and height of a map."""
T = TypeVar("T")
Point = tuple[float, float]
Region = tuple[float, float, float, float]
"""A rectangle: its left, lower, right and upper edge (x0, y0, x1, y1)."""


class ScenarioError(ValueError):
    """The map file is not a valid scenario; the message says where and why."""


class Fields:
    """A JSON object read key by key; wrong, missing and unknown keys raise ScenarioError."""

    def __init__(self, where: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise ScenarioError(f"{where} must be an object, not {shown(value)}")
        self._where = where
        self._left: dict[str, Any] = dict(value)

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self._left:
            raise ScenarioError(f"{self._where}.{key} is missing")
        value = self._left.pop(key)
        # In Python bool is a subclass of int, but a map must not have a bool instead of a number.
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ScenarioError(f"{self._where}.{key} must be {kind.__name__}, not {shown(value)}")
        return value

    def has(self, key: str) -> bool:
        """True if the object has this key, and the key was not read yet."""
        return key in self._left

    def inherit(self, other: Fields) -> None:
        """Add those keys of the other object that this object lacks."""
        self._left = other._left | self._left

    def flag(self, key: str) -> bool:
        """The truth value under this key; False if the key is missing."""
        return self.take(key, bool) if key in self._left else False

    def count(self, key: str, most: int) -> int:
        value = self.take(key, int)
        if not 1 <= value <= most:
            raise ScenarioError(f"{self._where}.{key} must be 1 to {most}, not {shown(value)}")
        return value

    def count_or(self, key: str, most: int, default: int) -> int:
        return self.count(key, most) if key in self._left else default

    def distance(self, key: str) -> float:
        return self.number(key, MAX_SIDE_CELLS)

    def number(self, key: str, most: float) -> float:
        """A number from 0 to `most`."""
        whole = self._left.get(key)
        if type(whole) is int:  # an int may be too large for a float
            self._left[key] = float(whole) if 0 <= whole <= most else math.inf
        value = self.take(key, float)
        if not 0 <= value <= most:
            raise ScenarioError(f"{self._where}.{key} must be 0 to {most:g}, not {value}")
        return value

    def cost_ms(self, key: str) -> float:
        """A number of milliseconds; 0 if the key is missing."""
        return self.number(key, MAX_MS) if key in self._left else 0.0

    def part(self, key: str, read: Callable[[Fields], T]) -> T | None:
        """The result of `read` for an optional object; None if the key is missing."""
        return self._read(key, self._left.pop(key), read) if key in self._left else None

    def part_or_one_of(self, key: str, read: Callable[[Fields], T], choices: Mapping[str, T]) -> T:
        """The result of `read` for an object; for a name, the entry of `choices` with this name."""
        if isinstance(self._left.get(key), Mapping):
            return self._read(key, self._left.pop(key), read)
        return self.one_of(key, choices)

    def items(self, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """The results of `read` for the objects of a list."""
        values = self.take(key, list)
        return tuple(self._read(f"{key}[{i}]", value, read) for i, value in enumerate(values))

    def _read(self, name: str, value: object, read: Callable[[Fields], T]) -> T:
        fields = Fields(f"{self._where}.{name}", value)
        made = read(fields)
        fields.finish()
        return made

    def one_of(self, key: str, choices: Mapping[str, T]) -> T:
        value = self.take(key, str)
        if value not in choices:
            raise ScenarioError(
                f"{self._where}.{key} must be one of {', '.join(choices)}, not {shown(value)}"
            )
        return choices[value]

    def several_of(self, key: str, choices: Mapping[str, T]) -> tuple[T, ...]:
        names = self.take(key, list)
        unknown = [name for name in names if not isinstance(name, str) or name not in choices]
        if unknown:
            raise ScenarioError(
                f"{self._where}.{key} must be made of {', '.join(choices)}, not {shown(unknown[0])}"
            )
        return tuple(choices[name] for name in names)

    def size(self, key: str) -> tuple[int, int]:
        x, y = self._pair(self.take(key, list), key)
        if not (8 <= x <= MAX_SIDE_CELLS and 8 <= y <= MAX_SIDE_CELLS and x * y % 8 == 0):
            raise ScenarioError(
                f"{self._where}.{key} must be 8 to {MAX_SIDE_CELLS} each way, "
                f"with a number of cells that fills whole bytes; not {x} x {y}"
            )
        return x, y

    def area(self, key: str, size: tuple[int, int]) -> tuple[int, int, int, int]:
        corners = self.take(key, list)
        if len(corners) != 2:
            raise ScenarioError(f"{self._where}.{key} must be two corners")
        (x0, y0), (x1, y1) = (self._pair(corner, key) for corner in corners)
        inside = min(x0, y0) >= 0 and x1 <= size[0] and y1 <= size[1]
        if not inside or x1 - x0 < 4 or y1 - y0 < 4:
            raise ScenarioError(
                f"{self._where}.{key} must lie in the map and be 4 cells wide at least"
            )
        return x0, y0, x1, y1

    def point(self, key: str) -> Point:
        return self._point(self.take(key, list), key)

    def point_or_none(self, key: str) -> Point | None:
        return self.point(key) if key in self._left else None

    def points_or_one_of(self, key: str, choices: Mapping[str, T]) -> tuple[Point, ...] | T:
        """The points of a list; for a name, the entry of `choices` with this name."""
        if not isinstance(self._left.get(key), list):
            return self.one_of(key, choices)
        return tuple(self._point(point, key) for point in self.take(key, list))

    def region(self, key: str) -> Region:
        corners = self.take(key, list)
        if len(corners) != 2:
            raise ScenarioError(f"{self._where}.{key} must be two corners")
        (x0, y0), (x1, y1) = (self._point(corner, key) for corner in corners)
        if x0 > x1 or y0 > y1:
            raise ScenarioError(f"{self._where}.{key} must be a lower left and an upper right")
        return x0, y0, x1, y1

    def lists_of_points(self, key: str) -> tuple[tuple[Point, ...], ...]:
        lists = self.take(key, list)
        if not lists or not all(isinstance(one, list) and one for one in lists):
            raise ScenarioError(f"{self._where}.{key} must be made of lists of points")
        return tuple(tuple(self._point(point, key) for point in one) for one in lists)

    def points(self, key: str, count: int) -> tuple[Point, ...]:
        values = self.take(key, list)
        if len(values) != count:
            raise ScenarioError(f"{self._where}.{key} must be {count} points")
        return tuple(self._point(value, key) for value in values)

    def rows(self, key: str, size: tuple[int, int]) -> list[str] | None:
        """A picture of the map as a list of strings, one for each row; None if it is missing."""
        if key not in self._left:
            return None
        width, height = size
        rows = self.take(key, list)
        if len(rows) != height or not all(isinstance(r, str) and len(r) == width for r in rows):
            raise ScenarioError(f"{self._where}.{key} must be {height} rows of {width} characters")
        return rows

    def finish(self) -> None:
        if self._left:
            names = ", ".join(sorted(self._left))
            raise ScenarioError(f"{self._where} has unknown keys: {names:.200}")

    def _pair(self, value: object, key: str) -> tuple[int, int]:
        match value:
            case [int(x), int(y)]:
                return x, y
        raise ScenarioError(f"{self._where}.{key} must be made of [x, y] pairs of whole numbers")

    def _point(self, value: object, key: str) -> Point:
        match value:
            case [int() | float() as x, int() | float() as y] if (
                0 <= x <= MAX_SIDE_CELLS and 0 <= y <= MAX_SIDE_CELLS
            ):
                return float(x), float(y)
        raise ScenarioError(
            f"{self._where}.{key} must be made of [x, y] pairs of 0 to {MAX_SIDE_CELLS}"
        )


Side = Literal["side", "opposite"]
Named = Literal["random", "side", "opposite"]


@dataclass(frozen=True)
class Circle:
    """Evenly spaced places around a centre, counter-clockwise from the first angle."""

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

    A unit keeps the distance `apart` from its owner's other units, and the distance `from_player`
    from the client's units.
    """

    region: Region
    hole_centre: Point
    hole_radius: float
    apart: float
    from_player: float


@dataclass(frozen=True)
class Column:
    """A vertical line of units; the line's centre is a random point in one of two regions.

    All columns of a wave on the same side have the same centre. With a spacing of 0 all units are
    at one point.
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
    """Neighbouring places around a centre, as close to each other as the units' sizes allow.

    Player 2 has the places of player 1, rotated by 180 degrees, so neither side has an advantage.
    """

    centre: Point


Place = Named | Circle | Ring | Scatter | Column | Points | Cluster


def read_place(fields: Fields, key: str) -> Place:
    """The place under this key."""
    return fields.part_or_one_of(key, lambda part: part.one_of("kind", _KINDS)(part), _NAMED)


_NAMED: dict[str, Named] = {"random": "random", "side": "side", "opposite": "opposite"}
_SIDES: dict[str, Side] = {"side": "side", "opposite": "opposite"}
_KINDS: dict[str, Callable[[Fields], Place]] = {
    "circle": lambda fields: Circle(
        centre=fields.point("centre"),
        radius=fields.distance("radius"),
        first_degrees=fields.number("first_degrees", 360),
    ),
    "ring": lambda fields: Ring(
        centre=fields.point("centre"),
        inner=fields.distance("inner"),
        outer=fields.distance("outer"),
    ),
    "scatter": lambda fields: Scatter(
        region=fields.region("region"),
        hole_centre=fields.point("hole_centre"),
        hole_radius=fields.distance("hole_radius"),
        apart=fields.distance("apart"),
        from_player=fields.distance("from_player"),
    ),
    "column": lambda fields: Column(
        side=fields.one_of("side", _SIDES),
        spacing=fields.distance("spacing"),
        regions=(fields.region("left"), fields.region("right")),
    ),
    "points": lambda fields: Points(fields.lists_of_points("choices")),
    "cluster": lambda fields: Cluster(fields.point("centre")),
}


BASE, A_LEVEL, A_LETTER = 191, 16, 2
"""The height of level 0 as a byte, and the differences between levels and between letters."""
CLIFF = 127
"""The height of cells without ground, as a byte."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The cells of a map. Arrays are indexed (y, x), the lowest row first."""

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
