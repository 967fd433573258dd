"""Reads a map file: units, scoring rules and time limit.

A stand-in map is a small JSON file with the name of the map that it imitates. Reading checks
everything, so an invalid map makes `create_game` fail (InvalidMapData) and no later request.

Rules it keeps: an unknown key is an error; no code depends on a map's name, so a new map needs only
a new file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from sc2pool.standin.cost import MAX_MS, StepCost
from sc2pool.standin.unit_types import TYPE_BY_NAME, UnitType

FORMAT = "sc2pool-standin-scenario/1"
MAX_SIDE_CELLS = 256
"""The real game's limit for the width and height of a map."""
MAX_UNITS = 400

Place = Literal["random", "side", "opposite"]
Taken = Literal["moves", "vanishes"]
T = TypeVar("T")


class ScenarioError(ValueError):
    """The map file is not a valid scenario; the message says where and why."""


@dataclass(frozen=True)
class Group:
    """Units placed together: at random, or in a line at one side or the opposite one."""

    type: UnitType
    owner: int
    count: int
    place: Place


@dataclass(frozen=True)
class Collect:
    """Targets that score when a unit of the player comes within `reach` of them.

    A target that is taken either moves to a new place, or vanishes; when all have vanished a new
    set appears. New places are at least `min_distance` from every unit of the player.
    """

    target: UnitType
    count: int
    reach: float
    min_distance: float
    score: int
    taken: Taken


@dataclass(frozen=True)
class Bounty:
    """The score for the death of one unit of this type and owner."""

    type: UnitType
    owner: int
    score: int


@dataclass(frozen=True)
class Waves:
    """If all enemies are dead: create new units and move all units back to the two sides."""

    units: tuple[Group, ...]


Rule = Collect | Bounty | Waves


@dataclass(frozen=True)
class Scenario:
    """One map. Coordinates are in cells, the playable area is (x0, y0, x1, y1)."""

    name: str
    size: tuple[int, int]
    playable_area: tuple[int, int, int, int]
    fog: bool
    time_limit_loops: int
    units: tuple[Group, ...]
    rules: tuple[Rule, ...]
    stamp: bool = False
    """True if each observation carries a stamp of its origin; see `requests.observe`."""
    canned: bool = False
    """True if nothing ever happens and observations are prepared; see `canned`."""
    step_cost: StepCost | None = None


def parse_scenario(content: bytes) -> Scenario:
    """The scenario in a map file's content; raises `ScenarioError`."""
    try:
        loaded = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(
            f"not a stand-in map (JSON expected; Blizzard's maps need the real game): {error}"
        ) from None
    fields = _Fields("map", loaded)
    if fields.take("format", str) != FORMAT:
        raise ScenarioError(f"map.format must be {FORMAT!r}")
    size = fields.size("size")
    scenario = Scenario(
        name=fields.take("name", str),
        size=size,
        playable_area=fields.area("playable_area", size),
        fog=fields.take("fog", bool),
        time_limit_loops=fields.count("time_limit_loops", 1 << 19),
        units=tuple(_group(item) for item in fields.items("units")),
        rules=tuple(_rule(item) for item in fields.items("rules")),
        stamp=fields.flag("stamp"),
        canned=fields.flag("canned"),
        step_cost=_step_cost(fields.part("step_cost")),
    )
    fields.finish()
    if scenario.canned and (scenario.fog or scenario.stamp):
        raise ScenarioError("map.canned goes with neither map.fog nor map.stamp")
    return scenario


class _Fields:
    """A JSON object read key by key; wrong, missing and unknown keys raise ScenarioError."""

    def __init__(self, where: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise ScenarioError(f"{where} must be an object, not {value!r:.60}")
        self._where = where
        self._left: dict[str, Any] = dict(value)

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self._left:
            raise ScenarioError(f"{self._where}.{key} is missing")
        value = self._left.pop(key)
        # In Python bool is a subclass of int; in a map it is another type.
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ScenarioError(f"{self._where}.{key} must be {kind.__name__}, not {value!r:.60}")
        return value

    def flag(self, key: str) -> bool:
        """A switch; off if the key is missing."""
        return self.take(key, bool) if key in self._left else False

    def count(self, key: str, most: int) -> int:
        value = self.take(key, int)
        if not 1 <= value <= most:
            raise ScenarioError(f"{self._where}.{key} must be 1 to {most}, not {value}")
        return value

    def distance(self, key: str) -> float:
        return self.number(key, MAX_SIDE_CELLS)

    def number(self, key: str, most: float) -> float:
        """A number from 0 to `most`."""
        if type(self._left.get(key)) is int:
            self._left[key] = float(self._left[key])
        value = self.take(key, float)
        if not 0 <= value <= most:
            raise ScenarioError(f"{self._where}.{key} must be 0 to {most:g}, not {value}")
        return value

    def cost_ms(self, key: str) -> float:
        """Milliseconds; 0 if the key is missing."""
        return self.number(key, MAX_MS) if key in self._left else 0.0

    def part(self, key: str) -> _Fields | None:
        """An optional object."""
        return _Fields(f"{self._where}.{key}", self._left.pop(key)) if key in self._left else None

    def one_of(self, key: str, choices: Mapping[str, T]) -> T:
        value = self.take(key, str)
        if value not in choices:
            raise ScenarioError(
                f"{self._where}.{key} must be one of {', '.join(choices)}, not {value!r:.60}"
            )
        return choices[value]

    def items(self, key: str) -> list[_Fields]:
        values = self.take(key, list)
        return [_Fields(f"{self._where}.{key}[{i}]", value) for i, value in enumerate(values)]

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

    def finish(self) -> None:
        if self._left:
            raise ScenarioError(f"{self._where} has unknown keys: {', '.join(sorted(self._left))}")

    def _pair(self, value: object, key: str) -> tuple[int, int]:
        match value:
            case [int(x), int(y)]:
                return x, y
        raise ScenarioError(f"{self._where}.{key} must be made of [x, y] pairs of whole numbers")


_PLACES: dict[str, Place] = {"random": "random", "side": "side", "opposite": "opposite"}
_TAKEN: dict[str, Taken] = {"moves": "moves", "vanishes": "vanishes"}


def _group(fields: _Fields) -> Group:
    group = Group(
        type=fields.one_of("type", TYPE_BY_NAME),
        owner=fields.count("owner", 16),
        count=fields.count("count", MAX_UNITS),
        place=fields.one_of("place", _PLACES),
    )
    fields.finish()
    return group


def _step_cost(fields: _Fields | None) -> StepCost | None:
    if fields is None:
        return None
    cost = StepCost(burn_ms=fields.cost_ms("burn_ms"), sleep_ms=fields.cost_ms("sleep_ms"))
    fields.finish()
    return cost


def _collect(fields: _Fields) -> Collect:
    return Collect(
        target=fields.one_of("target", TYPE_BY_NAME),
        count=fields.count("count", MAX_UNITS),
        reach=fields.distance("reach"),
        min_distance=fields.distance("min_distance"),
        score=fields.take("score", int),
        taken=fields.one_of("taken", _TAKEN),
    )


def _bounty(fields: _Fields) -> Bounty:
    return Bounty(
        type=fields.one_of("type", TYPE_BY_NAME),
        owner=fields.count("owner", 16),
        score=fields.take("score", int),
    )


def _waves(fields: _Fields) -> Waves:
    return Waves(units=tuple(_group(item) for item in fields.items("units")))


_RULES: dict[str, Callable[[_Fields], Rule]] = {
    "collect": _collect,
    "bounty": _bounty,
    "waves": _waves,
}


def _rule(fields: _Fields) -> Rule:
    rule = fields.one_of("kind", _RULES)(fields)
    fields.finish()
    return rule
