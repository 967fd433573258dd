"""A searching group's memory of a dark map: when each part of it was last seen.

The map is divided into blocks. A block counts as seen if its middle is near a unit; the game's own
visibility grid says the same in more detail, and takes longer to read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.minigames.geometry import DIRECTIONS, PlayableArea
from sc2pool.units import Floats, distances

BLOCK_SIDE = 4.0
"""Side of a block, in cells; at most, for the last row and column fill the area's edge."""
CLEAR_SIGHT = 8.0
"""Distance up to which a marine surely sees a whole unit, in cells; its sight is 9."""
FORGOTTEN_LOOPS = 800
"""Age at which a sight is worth nothing: a unit may have come back, or a new wave."""
SURVEYED_CELLS = 12.0
"""Range of the ages by direction, in cells."""


class SearchMemory:
    """When each block of the playable area was last seen."""

    def __init__(self, area: PlayableArea) -> None:
        columns = max(1, round((area.right - area.left) / BLOCK_SIDE))
        rows = max(1, round((area.top - area.bottom) / BLOCK_SIDE))
        x = area.left + (np.arange(columns) + 0.5) * (area.right - area.left) / columns
        y = area.bottom + (np.arange(rows) + 0.5) * (area.top - area.bottom) / rows
        self.shape = rows, columns
        self.middles = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        """(n, 2) map coordinates, row by row from the bottom."""
        self._seen_at = np.full(len(self.middles), -float(FORGOTTEN_LOOPS))
        self._loop = 0

    def note_seen(self, eyes: Floats, loop: int) -> None:
        """Units at these places see the blocks around them, at this loop."""
        self._loop = loop
        if len(eyes):
            self._seen_at[distances(self.middles, eyes).min(axis=1) <= CLEAR_SIGHT] = loop

    def ages(self) -> Floats:
        """Age of each block's last sight, (n,): 0 is now, 1 is forgotten or never."""
        return np.clip((self._loop - self._seen_at) / FORGOTTEN_LOOPS, 0.0, 1.0)

    def nearest_forgotten(self, x: float, y: float) -> NDArray[np.float64]:
        """Middle of the block to visit next, (2,): the nearest forgotten one, else the oldest."""
        offsets = self.middles - (x, y)
        ages = self.ages()
        # An age outweighs every distance unless both blocks are forgotten.
        cost = np.hypot(offsets[:, 0], offsets[:, 1]) - 1e4 * ages
        return np.asarray(self.middles[cost.argmin()])

    def ages_by_direction(self, x: float, y: float) -> NDArray[np.float32]:
        """Mean age of the blocks that lie in each of the eight directions, (8,); 0 for none."""
        offsets = self.middles - (x, y)
        lengths = np.hypot(offsets[:, 0], offsets[:, 1])
        towards = np.argmax(offsets @ np.array(DIRECTIONS).T, axis=1)
        near = lengths <= SURVEYED_CELLS
        count = np.bincount(towards[near], minlength=len(DIRECTIONS))
        total = np.bincount(towards[near], self.ages()[near], minlength=len(DIRECTIONS))
        return (total / np.maximum(count, 1)).astype(np.float32)
