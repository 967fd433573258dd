"""What is told of a game to who watches it."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.players.view import KINDS, UNITS_SHOWN, map_of, view_of
from sc2pool.units import unit_id

BEACON = unit_id("Beacon_Terran")
MARINE = unit_id("Marine")
MINERAL_SHARD = unit_id("NaturalMinerals")
ROACH = unit_id("Roach")


def unit(unit_type: int, alliance: int, **more) -> raw_pb2.Unit:
    made = raw_pb2.Unit(unit_type=unit_type, alliance=alliance, radius=0.375, **more)
    made.pos.x, made.pos.y = 3.14159, 2.0
    return made


@pytest.mark.parametrize(
    ("shown", "kind", "health"),
    [
        (unit(MARINE, raw_pb2.Self, health=30, health_max=45), "own", 0.67),
        (unit(74, raw_pb2.Ally, health=80, health_max=80, shield_max=80), "ally", 0.5),
        (unit(ROACH, raw_pb2.Enemy, health=145, health_max=145), "enemy", 1.0),
        (unit(BEACON, raw_pb2.Neutral), "beacon", None),
        (unit(MINERAL_SHARD, raw_pb2.Neutral), "minerals", None),
        (unit(341, raw_pb2.Neutral, mineral_contents=900), "minerals", None),
        (unit(342, raw_pb2.Neutral, vespene_contents=2250), "gas", None),
        (unit(886, raw_pb2.Neutral), "neutral", None),
    ],
)
def test_a_unit(shown, kind, health):
    observation = sc_pb.Observation()
    observation.raw_data.units.append(shown)
    (row,) = view_of(observation)["units"]
    assert row == [KINDS.index(kind), shown.unit_type, 3.14, 2.0, 0.38, health]


def test_where_a_unit_is_on_its_way_to():
    walking = unit(MARINE, raw_pb2.Self, health=45, health_max=45)
    walking.orders.add().target_world_space_pos.x = 20.5
    attacking = unit(MARINE, raw_pb2.Self, health=45, health_max=45)
    attacking.orders.add().target_unit_tag = 7
    observation = sc_pb.Observation()
    observation.raw_data.units.extend([walking, attacking])
    first, second = view_of(observation)["units"]
    assert first[6:] == [20.5, 0.0]
    assert len(second) == 6


def test_it_is_bounded():
    observation = sc_pb.Observation()
    observation.raw_data.units.extend([unit(MARINE, raw_pb2.Self)] * (UNITS_SHOWN + 1))
    assert len(view_of(observation)["units"]) == UNITS_SHOWN


def test_a_map_is_told_from_another_by_its_key():
    info = sc_pb.ResponseGameInfo(map_name="One")
    info.start_raw.pathing_grid.data = b"\x01\x02"
    first = map_of(info)["key"]
    assert map_of(info)["key"] == first
    info.start_raw.pathing_grid.data = b"\x01\x03"
    assert map_of(info)["key"] != first


def test_recorded_messages(recorded):
    for info, response in recorded:
        told, shown = map_of(info), view_of(response.observation)
        assert len(json.dumps(shown)) < 20_000
        assert len(json.dumps(told)) < 150_000
        kinds = {KINDS[row[0]] for row in shown["units"]}
        assert {"own", "minerals", "gas"} <= kinds
        # Own units stand on ground that can be walked on, or on their own buildings' footprints.
        grid = told["pathing"]
        bits = np.frombuffer(base64.b64decode(grid["data"]), np.uint8)
        cells = np.unpackbits(bits) if grid["bits"] == 1 else bits
        walkable = cells.reshape(grid["height"], grid["width"])
        workers = [row for row in shown["units"] if row[0] == 0 and row[4] < 0.5]
        assert workers
        assert all(walkable[int(row[3]), int(row[2])] for row in workers)
