"""Tasks for the contract's tests; they travel to the workers by value, as `envs` do."""

from __future__ import annotations

import sys

import cloudpickle
import numpy as np

from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Masked(MoveToBeacon):
    """Allows one action at a time, in turn; its episodes are four steps long."""

    max_loops = 32
    times_asked = 0

    def action_masks(self):
        mask = np.zeros(8, np.bool_)
        mask[self.times_asked % 8] = True
        self.times_asked += 1
        return mask
