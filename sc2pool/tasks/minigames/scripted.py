"""Scripted players, which play the mini-games well without learning.

Each is a pure function from an observation to an action, as a trained policy is. They show that a
task's spaces allow good play, and their scores show whether the stand-in is as difficult as the
real game. `scripts/studies/scores.py` measures them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.minigames.collect_mineral_shards import N_MARINES, VALUES_PER_MARINE
from sc2pool.tasks.minigames.defeat_roaches import (
    FOCUS_WEAKEST,
    MARINE_HEALTH,
    NEAR,
    RESCUE_HURT,
    ROACH_DAMAGE,
)
from sc2pool.tasks.minigames.geometry import nearest_direction

Observation = NDArray[np.float32]

ROACH_REACH = 4.0 + 0.625 + 0.375
"""Centre to centre: a roach's range, its radius, and a marine's."""


def move_to_beacon(observation: Observation) -> int:
    """Walk towards the beacon."""
    return nearest_direction(observation[0], observation[1])


def collect_mineral_shards(observation: Observation) -> NDArray[np.int64]:
    """Each marine walks towards its next shard."""
    per_marine = observation.reshape(N_MARINES, VALUES_PER_MARINE)
    return np.array([nearest_direction(x, y) for x, y in per_marine[:, 2:4]], dtype=np.int64)


def defeat_roaches(observation: Observation) -> int:
    """Shoot one roach after the other, but get the weakest marine out of reach before it falls."""
    lowest_health = observation[5] * MARINE_HEALTH
    danger = observation[8] * NEAR < ROACH_REACH
    return RESCUE_HURT if danger and lowest_health <= ROACH_DAMAGE else FOCUS_WEAKEST


SCRIPTED: dict[str, Callable[[Observation], Any]] = {
    "MoveToBeacon": move_to_beacon,
    "CollectMineralShards": collect_mineral_shards,
    "DefeatRoaches": defeat_roaches,
}
"""By task name."""
