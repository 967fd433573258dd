"""CollectMineralShards: two marines collect twenty mineral shards, with a reward of 1 for each.

Two marines that run to the same shard waste half their time. So in each marine's part of the
observation, the shards that are nearer to the other marine come last.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import N_DIRECTIONS, PlayableArea, bearing_of, walks
from sc2pool.tasks.task import Task
from sc2pool.units import NEUTRAL, Floats, Kind, Units, distances, select

MINERAL_SHARDS = Kind("NaturalMinerals", NEUTRAL)
OWN_MARINES = Kind("Marine")

N_MARINES = 2
N_SHARDS_SEEN = 3
NO_SHARD = (0.0, 0.0, 1.0)
NO_MARINE = (0.0, 0.0, *(NO_SHARD * N_SHARDS_SEEN))
VALUES_PER_MARINE = len(NO_MARINE)


class CollectMineralShards(Task):
    """Two marines collect shards by touching them; each walks in one of eight directions.

    The action space is `MultiDiscrete([8, 8])`: the directions of the first and the second marine,
    in the order of their tags. Direction 0 is right (east); the next ones follow counter-clockwise
    in steps of 45°. The observation space is `Box(-1, 1, (22,), float32)`; see `shards_vector`.
    """

    map_name: ClassVar[str] = "CollectMineralShards"
    max_loops: ClassVar[int | None] = 1920
    action_space = spaces.MultiDiscrete([N_DIRECTIONS] * N_MARINES)
    observation_space = spaces.Box(-1.0, 1.0, (N_MARINES * VALUES_PER_MARINE,), np.float32)

    area: PlayableArea
    marines: Units
    shards: Units

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)

    def observe(self) -> NDArray[np.float32]:
        self.marines, self.shards = select(self.lazy_observation, OWN_MARINES, MINERAL_SHARDS)
        return shards_vector(self.marines.positions, self.shards.positions, self.area)

    def act(self, action: NDArray[np.integer]) -> Commands:
        return walks(self.marines, action.tolist(), self.area)


def shards_vector(marines: Floats, shards: Floats, area: PlayableArea) -> NDArray[np.float32]:
    """The observation: values of the first two marines and of the shards around each marine.

    Args:
        marines: positions of the learner's marines, (n, 2), in the order of their tags.
        shards: positions of the shards, (n, 2).
        area: the map's playable area.

    Returns:
        (22,) float32: eleven values in [-1, 1] for the first marine, then eleven for the second.

        Values 0 and 1: the marine's position (x, y) relative to the area's centre, in halves of the
        area's longer side.
        Values 2 to 4: the unit vector (x, y) to the marine's first shard, and the shard's distance
        in lengths of the area's longer side, in [0, 1].
        Values 5 to 7 and 8 to 10: vector and distance for the marine's second and third shard.

        A missing shard has the vector 0, 0 and the distance 1. A missing marine has the position
        0, 0 and no shards.
    """
    preferred = preferences(marines[:N_MARINES], shards)[:, :N_SHARDS_SEEN].tolist()
    places = shards.tolist()
    vector: list[float] = []
    for (x, y), order in zip(marines[:N_MARINES].tolist(), preferred, strict=True):
        vector += area.relative(x, y)
        for shard_x, shard_y in [places[i] for i in order]:
            vector += bearing_of(shard_x - x, shard_y - y, area.longer_side)
        vector += NO_SHARD * (N_SHARDS_SEEN - len(order))
    vector += NO_MARINE * (N_MARINES - len(marines))
    return np.array(vector, np.float32)


def preferences(marines: Floats, shards: Floats) -> NDArray[np.intp]:
    """Each marine's order of the shards: by distance, but those nearer to another marine last."""
    to_shards = distances(marines, shards)
    nearest = to_shards.min(axis=0, initial=np.inf)
    another_is_nearer = to_shards > nearest
    return np.lexsort((to_shards, another_is_nearer), axis=1)
