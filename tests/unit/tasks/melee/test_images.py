"""A melee as an image: who is drawn in which plane."""

from __future__ import annotations

import numpy as np
from s2clientprotocol import raw_pb2

from sc2pool.tasks.melee.images import MeleeImage
from sc2pool.tasks.minigames.towns.unit_types import BARRACKS, COMMAND_CENTER, MARINE, SCV
from sc2pool.units import Kind


def test_each_side_and_the_ground_have_their_planes(unit, begin):
    task = begin(
        MeleeImage,
        unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=1, radius=2.75, build_progress=1),
        unit(Kind(SCV, raw_pb2.Self), 12, 30, tag=2, radius=0.375, build_progress=1),
        unit(Kind(BARRACKS, raw_pb2.Enemy), 32, 38, tag=3, radius=1.8, build_progress=0.5),
        unit(Kind(MARINE, raw_pb2.Enemy), 22, 22, tag=4, radius=0.375, build_progress=1),
    )
    start = task.game_info.start_raw
    for grid in (start.terrain_height, start.pathing_grid):
        grid.size.x = grid.size.y = 64
    walkable = np.zeros((64, 64), dtype=np.bool_)
    walkable[:30, :22] = True  # below and to the left of the middle
    start.terrain_height.data = bytes([200]) * 64 * 64
    start.pathing_grid.data = np.packbits(walkable).tobytes()
    task.on_start()
    scvs, town, barracks, marines, enemies, structures, ground, minerals, supply = task.observe()
    assert np.nonzero(scvs)[1].mean() < 16, "to the left"
    assert (town[32, 32], structures.max(), enemies.max()) == (255, 155, 255)
    assert np.nonzero(structures)[0].mean() < 24, "above"
    assert np.nonzero(enemies)[0].mean() > 40, "below"
    assert not any(plane.any() for plane in (barracks, marines, minerals, supply))
    assert ground[40, 10] == 200
    assert ground[10, 10] == ground[40, 50] == 0
