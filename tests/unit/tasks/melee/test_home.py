"""The town of a melee: what belongs to it, and where it builds."""

from __future__ import annotations

import numpy as np
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.tasks.melee.home import Home
from sc2pool.tasks.minigames.towns import unit_types
from sc2pool.units import Kind

OWN, NEUTRAL = raw_pb2.Self, raw_pb2.Neutral


def _info(cliff_from_x: int) -> sc_pb.ResponseGameInfo:
    """A map of 64 x 64 cells on which nothing can be built from a column on."""
    info = sc_pb.ResponseGameInfo()
    area, grid = info.start_raw.playable_area, info.start_raw.placement_grid
    area.p1.x = area.p1.y = grid.size.x = grid.size.y = 64
    cells = np.ones((64, 64), dtype=np.bool_)
    cells[:, cliff_from_x:] = False
    grid.bits_per_pixel, grid.data = 1, np.packbits(cells).tobytes()
    return info


def _home(state, unit, *more: raw_pb2.Unit, cliff_from_x: int = 64) -> Home:
    seen = state(
        unit(Kind(unit_types.COMMAND_CENTER, OWN), 30.5, 30.5, tag=1, build_progress=1),
        unit(Kind(unit_types.SCV, OWN), 34, 30, tag=2, build_progress=1),
        *more,
    )
    seen.player_common.minerals = 500
    home = Home(_info(cliff_from_x), seen)
    home.update(seen)
    return home


def test_only_near_fields_of_any_type_belong_to_it(state, unit):
    home = _home(
        state,
        unit,
        unit(Kind(483, NEUTRAL), 24, 30.5, tag=3),
        unit(Kind(unit_types.MINERAL_FIELD, NEUTRAL), 24, 32.5, tag=4),
        unit(Kind(unit_types.MINERAL_FIELD, NEUTRAL), 50, 30.5, tag=5),
        unit(Kind(343, NEUTRAL), 30.5, 37.5, tag=6),
    )
    assert {field.tag for field in home.all(unit_types.MINERAL_FIELD)} == {3, 4}
    assert [geyser.tag for geyser in home.all(unit_types.GEYSER)] == [6]


def _place(home: Home, ability_id: int) -> tuple[float, float]:
    (first, *_) = home.build(ability_id)
    target = first.target_world_space_pos
    return target.x, target.y


def test_structures_stand_on_ground_and_leave_a_passage(state, unit):
    for cliff_from_x in (64, 33, 29):
        home = _home(state, unit, cliff_from_x=cliff_from_x)
        places = [_place(home, commands.BUILD_SUPPLY_DEPOT) for _ in range(4)]
        assert all(x + 1 <= cliff_from_x for x, _ in places)
        assert all(max(abs(x - 30.5), abs(y - 30.5)) >= 2.5 + 1 + 1 for x, y in places)
        apart = [
            max(abs(x - a), abs(y - b)) for i, (x, y) in enumerate(places) for a, b in places[:i]
        ]
        assert min(apart) >= 3


def test_no_ground_no_order(state, unit):
    home = _home(state, unit, cliff_from_x=0)
    assert list(home.build(commands.BUILD_SUPPLY_DEPOT)) == []
    assert home.coming(unit_types.SUPPLY_DEPOT) == 0
