"""The plane geometry that tasks share: directions, the playable area, bearings, grids of the map.

Rules: all functions are pure and work on map coordinates (x to the right, y up, one unit is one
grid cell). Values for an observation always lie within [-1, 1]. A grid's missing cells are 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.units import Floats, Units, distances

N_DIRECTIONS = 8
DIRECTIONS: tuple[tuple[float, float], ...] = tuple(
    (math.cos(k * math.tau / N_DIRECTIONS), math.sin(k * math.tau / N_DIRECTIONS))
    for k in range(N_DIRECTIONS)
)
"""Unit vectors of the directions. Direction 0 is right (east), 2 is up, 4 is left, 6 is down."""

WALK_LENGTH = 4.0
"""The distance from a unit to the target of a walk order, in cells. No unit walks this far in an
env step of 8 loops, so a unit never stands still between two actions."""


@dataclass(frozen=True)
class PlayableArea:
    """The rectangle of the map in which units can be."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def of(cls, game_info: sc_pb.ResponseGameInfo) -> PlayableArea:
        """The playable area of a map that the game describes."""
        area = game_info.start_raw.playable_area
        return cls(area.p0.x, area.p0.y, area.p1.x, area.p1.y)

    @cached_property
    def longer_side(self) -> float:
        """The unit of observed distances: the length of the longer side, but at least one cell."""
        return max(self.right - self.left, self.top - self.bottom, 1.0)

    @cached_property
    def centre(self) -> tuple[float, float]:
        """The area's centre."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def clamp(self, x: float, y: float) -> tuple[float, float]:
        """The point of the area that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)

    def relative(self, x: float, y: float) -> tuple[float, float]:
        """(x, y) relative to the centre, in halves of the longer side, clipped to [-1, 1]."""
        centre_x, centre_y = self.centre
        half = self.longer_side / 2
        return _clip((x - centre_x) / half), _clip((y - centre_y) / half)


def walk_target(x: float, y: float, direction: int, area: PlayableArea) -> tuple[float, float]:
    """The target of a walk in a direction, clamped on each axis: units slide along the edge."""
    step_x, step_y = DIRECTIONS[direction]
    return area.clamp(x + WALK_LENGTH * step_x, y + WALK_LENGTH * step_y)


def walks(units: Units, directions: Iterable[int], area: PlayableArea) -> Commands:
    """The commands that make each unit walk in its direction."""
    return [
        commands.move([tag], walk_target(x, y, direction, area))
        for tag, (x, y), direction in zip(
            units.tags, units.positions.tolist(), directions, strict=False
        )
    ]


def flights(
    units: Units, fleeing: Iterable[int], threats: Units, area: PlayableArea
) -> list[raw_pb2.ActionRawUnitCommand]:
    """The commands that make the units with these indices walk away from the nearest threat."""
    orders = []
    for unit in fleeing:
        place = units.positions[unit]
        nearest = distances(place[None], threats.positions)[0].argmin()
        direction = nearest_direction(*(place - threats.positions[nearest]).tolist())
        x, y = place.tolist()
        orders.append(commands.move([units.tags[unit]], walk_target(x, y, direction, area)))
    return orders


def rescue(
    units: Units, hurt: Collection[int], enemies: Units, target_tag: int, area: PlayableArea
) -> Commands:
    """The units with the indices `hurt` walk away from the nearest enemy; the others attack."""
    fighters = [tag for unit, tag in enumerate(units.tags) if unit not in hurt]
    attacks = [commands.attack(fighters, target_tag)] if fighters else []
    return [*flights(units, hurt, enemies, area), *attacks]


def nearest_first(units: Units, others: Units) -> NDArray[np.intp]:
    """Indices of `units`, the nearest to the centre of `others` first."""
    centre = others.positions.mean(axis=0, keepdims=True)
    return np.argsort(distances(centre, units.positions)[0], kind="stable")


def nearest_direction(offset_x: float, offset_y: float) -> int:
    """The index of the direction nearest to an offset."""
    return round(math.atan2(offset_y, offset_x) / math.tau * N_DIRECTIONS) % N_DIRECTIONS


def bearing_of(
    offset_x: float, offset_y: float, longest_distance: float
) -> tuple[float, float, float]:
    """The result of `bearings` for one target, but without numpy, which is ten times as fast."""
    length = math.hypot(offset_x, offset_y)
    unit = max(length, 1e-6)
    return _clip(offset_x / unit), _clip(offset_y / unit), _clip(length / longest_distance)


def bearings(x: float, y: float, targets: Floats, longest_distance: float) -> NDArray[np.float32]:
    """The direction and distance, (n, 3) float32, from (x, y) to each of the `targets`, (n, 2).

    The direction is a unit vector, or zero if (x, y) is the target. The distance is a share of
    `longest_distance`, at most 1.
    """
    offsets = targets - (x, y)
    lengths = np.hypot(offsets[:, 0], offsets[:, 1])
    result = np.empty((len(targets), 3), dtype=np.float32)
    result[:, :2] = offsets / np.maximum(lengths, 1e-6)[:, None]
    result[:, 2] = lengths / longest_distance
    return result.clip(-1.0, 1.0, out=result)


def _clip(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def bits_of(grid: common_pb2.ImageData) -> NDArray[np.bool_]:
    """The grid as bools [y, x]; older games send bytes instead of bits, from the top row down."""
    if grid.bits_per_pixel == 8:
        return np.flipud(bytes_of(grid)).astype(np.bool_)
    return _shaped(np.unpackbits(np.frombuffer(grid.data, dtype=np.uint8)), grid).astype(np.bool_)


def walkable_of(pathing: common_pb2.ImageData) -> NDArray[np.bool_]:
    """An array [y, x] of bools: true if units can walk on the cell. Older games send the inverse,
    which is inverted here."""
    cells = bits_of(pathing)
    return ~cells if pathing.bits_per_pixel == 8 else cells


def bytes_of(grid: common_pb2.ImageData) -> NDArray[np.uint8]:
    """The grid as an array [y, x] of one byte per cell."""
    return _shaped(np.frombuffer(grid.data, dtype=np.uint8), grid)


def _shaped(cells: NDArray[np.uint8], grid: common_pb2.ImageData) -> NDArray[np.uint8]:
    whole = np.zeros((max(grid.size.y, 0), max(grid.size.x, 0)), dtype=np.uint8)
    known = min(cells.size, whole.size)
    whole.reshape(-1)[:known] = cells[:known]
    return whole
