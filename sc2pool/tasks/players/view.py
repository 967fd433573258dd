"""What a game looks like right now, compact and as plain data, for whoever watches.

    view_of(observation)  ─► where which units are, how well, what they are on their way to
    map_of(game_info)     ─► the map they are on: its size, its playable part, where one can walk

Rules: read only from what the player has anyway, nothing is asked of the game; bounded, however
many units there are; nothing but JSON's own types comes out, so a number that is none becomes 0.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.units import BEACON, MINERAL_SHARD

UNITS_SHOWN = 1000
"""More units than this are not shown."""

KINDS = ("own", "ally", "enemy", "neutral", "minerals", "gas", "beacon")
"""What a unit is drawn as; a view names it by its place in here."""

_KIND = {name: index for index, name in enumerate(KINDS)}
_BY_ALLIANCE = {
    raw_pb2.Self: _KIND["own"],
    raw_pb2.Ally: _KIND["ally"],
    raw_pb2.Enemy: _KIND["enemy"],
}
_BY_TYPE = {BEACON: _KIND["beacon"], MINERAL_SHARD: _KIND["minerals"]}


def view_of(observation: sc_pb.Observation) -> dict[str, Any]:
    """What an observation shows.

    Returns:
        `loop`, `score`, `minerals`, `vespene`, `food_used`, `food_cap`, and `units`, a list each:
        [kind (an index of `KINDS`), unit type, x, y, radius, health from 0 to 1 (shields
        included; None for what has none)], and for one on its way also [x, y] of its target.
    """
    common = observation.player_common
    return {
        "loop": observation.game_loop,
        "score": observation.score.score,
        "minerals": common.minerals,
        "vespene": common.vespene,
        "food_used": common.food_used,
        "food_cap": common.food_cap,
        "units": [_row(unit) for unit in observation.raw_data.units[:UNITS_SHOWN]],
    }


def _row(unit: raw_pb2.Unit) -> list[Any]:
    kind = _BY_ALLIANCE.get(unit.alliance)
    if kind is None:
        kind = _neutral_kind(unit)
    whole = unit.health_max + unit.shield_max
    health = _rounded((unit.health + unit.shield) / whole) if whole > 0 else None
    position = unit.pos
    row: list[Any] = [
        kind,
        unit.unit_type,
        _rounded(position.x),
        _rounded(position.y),
        _rounded(unit.radius),
        health,
    ]
    if unit.orders and unit.orders[0].HasField("target_world_space_pos"):
        target = unit.orders[0].target_world_space_pos
        row += [_rounded(target.x), _rounded(target.y)]
    return row


def _rounded(value: float) -> float:
    return round(value, 2) if math.isfinite(value) else 0.0


def _neutral_kind(unit: raw_pb2.Unit) -> int:
    if unit.mineral_contents > 0:
        return _KIND["minerals"]
    if unit.vespene_contents > 0:
        return _KIND["gas"]
    return _BY_TYPE.get(unit.unit_type, _KIND["neutral"])


def map_of(game_info: sc_pb.ResponseGameInfo) -> dict[str, Any]:
    """The map that is played.

    Returns:
        `name`, `width`, `height`, `area` (the playable part: x0, y0, x1, y1), `key` (differs for
        maps that differ), and `pathing` and `terrain`, grids as `_grid` makes them.
    """
    start = game_info.start_raw
    area = start.playable_area
    grids = start.pathing_grid.data + start.terrain_height.data
    return {
        "name": game_info.map_name,
        "width": start.map_size.x,
        "height": start.map_size.y,
        "area": [area.p0.x, area.p0.y, area.p1.x, area.p1.y],
        "key": f"{zlib.crc32(game_info.map_name.encode() + grids):08x}",
        "pathing": _grid(start.pathing_grid),
        "terrain": _grid(start.terrain_height),
    }


def _grid(image: common_pb2.ImageData) -> dict[str, Any]:
    """A grid as in the API: rows from the map's bottom (y = 0) up, first pixel in the top bit."""
    return {
        "bits": image.bits_per_pixel,
        "width": image.size.x,
        "height": image.size.y,
        "data": base64.b64encode(image.data).decode("ascii"),
    }
