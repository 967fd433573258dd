"""The newest state of a game as compact plain data, for `sc2pool watch`.

    `view_of(observation)`  ─► the units: kind, place, health, target.
    `map_of(game_info)`     ─► the map: size, playable area, pathing grid.

Rules: views are made from messages that the player already has, without a request to the game.
Views have at most `UNITS_SHOWN` units, and only JSON's types, so NaN and infinity become 0.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.units import unit_id

BEACON = unit_id("Beacon_Terran")
MINERAL_SHARD = unit_id("NaturalMinerals")

UNITS_SHOWN = 1000
"""The largest number of units in a view."""

KINDS = ("own", "ally", "enemy", "neutral", "minerals", "gas", "beacon")
"""The kinds of units to draw; for each unit a view holds the kind's index in this tuple."""

_KIND = {name: index for index, name in enumerate(KINDS)}
_BY_ALLIANCE = {
    raw_pb2.Self: _KIND["own"],
    raw_pb2.Ally: _KIND["ally"],
    raw_pb2.Enemy: _KIND["enemy"],
}
_BY_TYPE = {BEACON: _KIND["beacon"], MINERAL_SHARD: _KIND["minerals"]}


def view_of(observation: sc_pb.Observation) -> dict[str, Any]:
    """The view of an observation: the player's figures, and a list for each of the `units`.

    A unit is [index of `KINDS`, unit type, x, y, radius, health]. Health is from 0 to 1, including
    shields, or None for a unit without health. For a moving unit, the target's x and y follow.
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
    """The map; `area` (x0, y0, x1, y1) is playable, and `key` is a checksum of name and grids."""
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
    """A grid as in the API: rows from the bottom (y = 0) up; a byte begins with its highest bit."""
    return {
        "bits": image.bits_per_pixel,
        "width": image.size.x,
        "height": image.size.y,
        "data": base64.b64encode(image.data).decode("ascii"),
    }
