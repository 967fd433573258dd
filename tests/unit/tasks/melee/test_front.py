"""The marines of a melee: whom they attack, and where they look for the enemy."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.melee.front import Front
from sc2pool.tasks.minigames.towns.unit_types import BARRACKS, MARINE
from sc2pool.units import Kind

OWN_MARINE, ENEMY_MARINE = Kind(MARINE, raw_pb2.Self), Kind(MARINE, raw_pb2.Enemy)
ENEMY_BARRACKS = Kind(BARRACKS, raw_pb2.Enemy)


@pytest.fixture
def front() -> Front:
    info = sc_pb.ResponseGameInfo()
    info.start_raw.start_locations.append(common_pb2.Point2D(x=30, y=30))
    grid = info.start_raw.pathing_grid
    grid.size.x = grid.size.y = 32
    grid.bits_per_pixel, grid.data = 1, b"\xff" * 128
    return Front(info)


def _target(front: Front, seen: sc_pb.Observation) -> tuple[float, float]:
    front.update(seen)
    (command,) = front.attack()
    return command.target_world_space_pos.x, command.target_world_space_pos.y


def _visibility(seen: sc_pb.Observation, cells: np.ndarray) -> None:
    grid = seen.raw_data.map_state.visibility
    grid.size.y, grid.size.x = cells.shape
    grid.data = cells.astype(np.uint8).tobytes()


def test_known_structures_come_before_units_and_these_before_the_start(front, unit, state):
    marine = unit(OWN_MARINE, 2, 2, tag=1)
    soldiers = [unit(ENEMY_MARINE, 9, 9, tag=2, radius=0.375)]
    barracks = [unit(ENEMY_BARRACKS, x, 20, tag=x, radius=1.8) for x in (25, 20)]
    assert _target(front, state(marine, *soldiers, *barracks)) == (20, 20)
    assert len(front.enemy_structures) == 2
    assert front.near((9, 10), 2) == 1
    assert _target(front, state(marine, *soldiers)) == (9, 9)
    assert _target(front, state(marine)) == (30, 30)


def test_dark_ground_is_looked_at_when_nothing_is_known(front, unit, state):
    seen = state(unit(OWN_MARINE, 2, 2, tag=1))
    grid = np.full((32, 32), 2)
    grid[30, 30] = 1
    _visibility(seen, grid)
    assert _target(front, seen) == (30.5, 30.5)
    grid[10, 5] = grid[20, 20] = 0
    _visibility(seen, grid)
    assert _target(front, seen) == (5.5, 10.5)
    _visibility(seen, np.full((32, 32), 2))
    assert _target(front, seen) == (2, 2), "all is seen: there is nothing to look for"


def test_only_idle_marines_are_sent_but_all_come_home(front, unit, state):
    busy = unit(OWN_MARINE, 3, 3, tag=5)
    busy.orders.add(ability_id=23)
    front.update(state(unit(OWN_MARINE, 2, 2, tag=1), busy))
    assert [list(command.unit_tags) for command in front.attack()] == [[1]]
    assert [list(command.unit_tags) for command in front.defend((1, 1))] == [[1, 5]]
    front.update(state(busy))
    assert list(front.attack()) == []
