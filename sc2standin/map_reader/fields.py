"""Reads a JSON object of a map file, key by key.

Rule it keeps: a wrong, missing or unknown key is an error that names its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any, TypeVar

from sc2standin.cost import MAX_MS

MAX_SIDE_CELLS = 256
"""The real game's limit for the width and height of a map."""
T = TypeVar("T")
Point = tuple[float, float]
Region = tuple[float, float, float, float]
"""A rectangle: (x0, y0, x1, y1)."""


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
        # In Python bool is a subclass of int, but in a map the types are different.
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ScenarioError(f"{self._where}.{key} must be {kind.__name__}, not {shown(value)}")
        return value

    def has(self, key: str) -> bool:
        """True if the object has this key, and the key was not read yet."""
        return key in self._left

    def flag(self, key: str) -> bool:
        """A switch; off if the key is missing."""
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
        if type(whole) is int:  # it may be too large for a float
            self._left[key] = float(whole) if 0 <= whole <= most else math.inf
        value = self.take(key, float)
        if not 0 <= value <= most:
            raise ScenarioError(f"{self._where}.{key} must be 0 to {most:g}, not {value}")
        return value

    def cost_ms(self, key: str) -> float:
        """Milliseconds; 0 if the key is missing."""
        return self.number(key, MAX_MS) if key in self._left else 0.0

    def part(self, key: str) -> Fields | None:
        """An optional object."""
        return Fields(f"{self._where}.{key}", self._left.pop(key)) if key in self._left else None

    def part_or_none(self, key: str) -> Fields | None:
        """The object under a key that may also have a value of another type."""
        return self.part(key) if isinstance(self._left.get(key), Mapping) else None

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

    def items(self, key: str) -> list[Fields]:
        values = self.take(key, list)
        return [Fields(f"{self._where}.{key}[{i}]", value) for i, value in enumerate(values)]

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

    def points_or_none(self, key: str) -> tuple[Point, ...] | None:
        """The list of points under a key that may also have a value of another type."""
        if not isinstance(self._left.get(key), list):
            return None
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
        """A picture of the map, row by row; None if the key is missing."""
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
