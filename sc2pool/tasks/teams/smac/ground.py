"""The map's grids as SMAC reads them: where a unit can move, and how high the ground is.

Source: `StarCraft2Env._launch`, `can_move`, `get_surrounding_points`. Rule: units cannot move
outside the map, but an agent's observation of such a place is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.minigames.geometry import bytes_of, walkable_of
from sc2pool.units import Floats

Bools = NDArray[np.bool_]

MOVES = np.array([(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)])
"""North, south, east, west."""
_AROUND = np.array([(0, 2), (0, -2), (2, 0), (-2, 0), (1, 1), (-1, -1), (1, -1), (-1, 1), (0, 0)])
"""The places that an agent sees, as offsets in lengths of a move; the last one is its own."""


@dataclass(frozen=True)
class Ground:
    """The grids of one map.

    Attributes:
        size: the map's width and height.
        playable: width and height of the playable area.
        walkable: whether units can walk on each cell, (x, y).
        height: the height of each cell, (x, y), from 0 to 1.
    """

    size: tuple[int, int]
    playable: tuple[float, float]
    walkable: Bools
    height: Floats

    @classmethod
    def of(cls, game_info: sc_pb.ResponseGameInfo) -> Ground:
        """The ground that the game describes."""
        raw = game_info.start_raw
        area = raw.playable_area
        return cls(
            size=(raw.map_size.x, raw.map_size.y),
            playable=(area.p1.x - area.p0.x, area.p1.y - area.p0.y),
            walkable=walkable_of(raw.pathing_grid).T,
            # SMAC flips this grid in every version of the game.
            height=np.flip(bytes_of(raw.terrain_height).T, axis=1) / 255,
        )

    def turned(self) -> Ground:
        """The ground after a turn of the map by 180°."""
        walkable, height = np.flip(self.walkable), np.flip(self.height)
        return replace(self, walkable=walkable, height=height)

    def can_move(self, positions: Floats, length: float) -> Bools:
        """Whether half a move takes each unit to a walkable cell.

        Returns:
            (n, 4): north, south, east, west.
        """
        # Truncated as in SMAC: a place less than a cell left of or below the map counts as inside.
        ahead = (positions[:, None, :] + MOVES * (length / 2)).astype(np.int64)
        return self._inside(ahead) & self.walkable[self._clipped(ahead)]

    def walkable_around(self, positions: Floats, length: int) -> Bools:
        """Whether units can walk on the 8 places around each unit, (n, 8)."""
        places = positions.astype(np.int64)[:, None, :] + _AROUND[:-1] * length
        return ~self._inside(places) | self.walkable[self._clipped(places)]

    def height_around(self, positions: Floats, length: int) -> Floats:
        """The height of the 8 places around each unit and of its own place, (n, 9)."""
        places = positions.astype(np.int64)[:, None, :] + _AROUND * length
        return np.where(self._inside(places), self.height[self._clipped(places)], 1.0)

    def _inside(self, places: NDArray[np.int64]) -> Bools:
        return np.asarray(((places >= 0) & (places < self.size)).all(axis=-1))

    def _clipped(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The indices of the cells at some places, clipped to the map."""
        x, y = np.moveaxis(np.clip(places, 0, np.subtract(self.size, 1)), -1, 0)
        return x, y
