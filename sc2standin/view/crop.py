"""Coordinates within the playable area, for a client that joins with `raw_crop_to_playable_area`.

Points in the messages of raw.proto are relative to the corner of the playable area, and grids are
cut to the area, as the protocol's comment on the option says. Queries and debug commands are
defined in other protocol files, and keep the map's coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.simulation.terrain import Terrain

Position = common.Point | common.Point2D


class Crop:
    """Converts messages between the coordinates of a map and those of its playable area."""

    def __init__(self, terrain: Terrain) -> None:
        self._terrain = terrain

    def observation(self, raw: raw_pb.ObservationRaw) -> None:
        """Convert an observation to the coordinates of the playable area."""
        self._move_in([raw.player.camera, *(unit.pos for unit in raw.units)])
        self._move_in(source.pos for source in raw.player.power_sources)
        self._move_in(point for effect in raw.effects for point in effect.pos)
        for unit in raw.units:
            self._move_in(target.point for target in unit.rally_targets)
            self._move_in(
                order.target_world_space_pos
                for order in unit.orders
                if order.HasField("target_world_space_pos")
            )
        self._cut(raw.map_state.visibility)
        self._cut(raw.map_state.creep)

    def start(self, start: raw_pb.StartRaw) -> None:
        """Change a description of the map so that it describes the playable area."""
        terrain, area = self._terrain, start.playable_area
        start.map_size.x, start.map_size.y = terrain.x1 - terrain.x0, terrain.y1 - terrain.y0
        area.p0.x = area.p0.y = 0
        area.p1.x, area.p1.y = start.map_size.x, start.map_size.y
        self._move_in(start.start_locations)
        for grid in (start.pathing_grid, start.terrain_height, start.placement_grid):
            self._cut(grid)

    def done(self, action: raw_pb.ActionRaw) -> None:
        """Convert the report of an action to the coordinates of the playable area."""
        self._move_in(_points(action))

    def asked(self, action: raw_pb.ActionRaw) -> raw_pb.ActionRaw:
        """An action of the client, converted to the map's coordinates."""
        moved = raw_pb.ActionRaw()
        moved.CopyFrom(action)
        for point in _points(moved):
            point.x += self._terrain.x0
            point.y += self._terrain.y0
        return moved

    def _move_in(self, points: Iterable[Position]) -> None:
        for point in points:
            point.x -= self._terrain.x0
            point.y -= self._terrain.y0

    def _cut(self, grid: common.ImageData) -> None:
        terrain = self._terrain
        flat = np.frombuffer(grid.data, dtype=np.uint8)
        if grid.bits_per_pixel == 1:
            flat = np.unpackbits(flat)
        cells = flat.reshape(terrain.height, terrain.width)
        cells = cells[terrain.y0 : terrain.y1, terrain.x0 : terrain.x1]
        grid.size.y, grid.size.x = cells.shape
        grid.data = (np.packbits(cells) if grid.bits_per_pixel == 1 else cells).tobytes()


def _points(action: raw_pb.ActionRaw) -> list[Position]:
    if action.unit_command.HasField("target_world_space_pos"):
        return [action.unit_command.target_world_space_pos]
    if action.camera_move.HasField("center_world_space"):
        return [action.camera_move.center_world_space]
    return []
