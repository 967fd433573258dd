"""A scripted player of `Melee`: it plays well without learning, from what a policy sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.melee import melee

ENOUGH_MARINES = 16
"""Marines with which the first attack begins."""


def play_melee(observation: NDArray[np.float32]) -> int:
    """Sixteen SCVs, four barracks, supply for what they train; sixteen marines attack."""
    minerals, free_supply, workers = observation[[0, 3, 4]] * (1000, 20, 50)
    training, depots, depots_coming = observation[6:9] * (5, 20, 4)
    barracks, barracks_coming, empty = observation[9:12] * (10, 4, 10)
    marines, idle_marines = observation[12:14] * 100
    threats, structures = observation[15] * 20, observation[16] * 20
    wishes = (
        (melee.GATHER_MINERALS, observation[5] > 0),
        (
            melee.ATTACK,
            idle_marines > 0.5 and (marines >= ENOUGH_MARINES or threats > 0.5 or structures > 0.5),
        ),
        (
            melee.BUILD_DEPOT,
            free_supply < 2 + 2 * barracks and depots_coming < 0.5 and minerals >= 100,
        ),
        (melee.TRAIN_SCV, workers < 15.5 and training < 0.5 and minerals >= 50),
        (melee.TRAIN_MARINE, empty > 0.5 and minerals >= 50),
        (
            melee.BUILD_BARRACKS,
            barracks + barracks_coming < 3.5 and depots > 0.5 and minerals >= 150,
        ),
    )
    return next((action for action, wished in wishes if wished), melee.WAIT)
