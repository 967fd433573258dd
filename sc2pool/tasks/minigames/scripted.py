"""Scripted players, which play the mini-games well without learning.

Each player is a pure function from an observation to an action, as a trained policy is. The players
show that a task's spaces allow good play. The players' scores show whether the stand-in is as
difficult as the real game. `scripts/studies/scores.py` measures the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.minigames import town_games as towns
from sc2pool.tasks.minigames import zerglings
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

ROACH_REACH = 4.0 + 0.5 + 0.375
"""A roach's range from centre to centre: the weapon's range plus the radii of roach and marine."""


def move_to_beacon(observation: Observation) -> int:
    """Walk towards the beacon."""
    return nearest_direction(observation[0], observation[1])


def collect_mineral_shards(observation: Observation) -> NDArray[np.int64]:
    """Each marine walks towards the first shard in its own part of the observation."""
    per_marine = observation.reshape(N_MARINES, VALUES_PER_MARINE)
    return np.array([nearest_direction(x, y) for x, y in per_marine[:, 2:4]], dtype=np.int64)


def defeat_roaches(observation: Observation) -> int:
    """Shoot one roach at a time; move the weakest marine away before a hit would kill it."""
    lowest_health = observation[5] * MARINE_HEALTH
    danger = observation[8] * NEAR < ROACH_REACH
    return RESCUE_HURT if danger and lowest_health <= ROACH_DAMAGE else FOCUS_WEAKEST


def find_and_defeat_zerglings(observation: Observation) -> int:
    """Shoot the nearest zergling. If none is in sight, walk to the nearest unsearched ground."""
    if observation[1] > 0:
        return zerglings.FOCUS_NEAREST
    return zerglings.SEARCH_FIRST_WALK + nearest_direction(observation[24], observation[25])


def defeat_zerglings_and_banelings(_observation: Observation) -> int:
    """Shoot the banelings before they arrive, then the zerglings."""
    return zerglings.FOCUS_BANELINGS


def collect_minerals_and_gas(observation: Observation) -> int:
    """Send all SCVs to minerals, always train one more SCV, build depots in time."""
    minerals, free_supply = observation[0] * 1000, observation[3] * 20
    training, depots_coming = observation[6] * 5, observation[8] * 4
    if observation[5] > 0:
        return towns.GATHER_MINERALS
    if free_supply < 2.5 and depots_coming < 0.5:
        return towns.BUILD_DEPOT if minerals >= 100 else towns.WAIT
    return towns.TRAIN_SCV if training < 1.5 else towns.WAIT


def build_marines(observation: Observation) -> int:
    """Train sixteen SCVs, build eight barracks and enough depots, and train marines."""
    minerals, free_supply, workers = observation[[0, 3, 4]] * (1000, 20, 50)
    training, depots, depots_coming = observation[6:9] * (5, 20, 4)
    barracks, barracks_coming, empty = observation[9:12] * (10, 4, 10)
    if observation[5] > 0:
        return towns.GATHER_MINERALS
    if free_supply < 2 + barracks and depots_coming < 1.5 and workers > 13:
        return towns.BUILD_DEPOT if minerals >= 100 else towns.WAIT
    if workers < 15.5 and training < 0.5:
        return towns.TRAIN_SCV
    if empty > 0.5:
        return towns.TRAIN_MARINE
    if barracks + barracks_coming < 7.5 and depots > 0.5 and minerals >= 150:
        return towns.BUILD_BARRACKS
    return towns.WAIT


SCRIPTED: dict[str, Callable[[Observation], Any]] = {
    "MoveToBeacon": move_to_beacon,
    "CollectMineralShards": collect_mineral_shards,
    "FindAndDefeatZerglings": find_and_defeat_zerglings,
    "DefeatRoaches": defeat_roaches,
    "DefeatZerglingsAndBanelings": defeat_zerglings_and_banelings,
    "CollectMineralsAndGas": collect_minerals_and_gas,
    "BuildMarines": build_marines,
}
"""The scripted players by task name."""
