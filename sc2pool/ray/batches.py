"""Pure functions that join the nodes' batches, and make a batch for a dead node.

The results are copies, so the caller can change them. The arrays from Ray are read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from sc2pool.integration import SpaceLayout
from sc2pool.pool.batch import Batch
from sc2pool.utilities import Array


def together(layout: SpaceLayout, batches: Sequence[Batch]) -> Batch:
    """One batch of all envs, in the order of `batches`, which has one batch per node."""

    def joined(name: str) -> Array:
        return np.concatenate([getattr(batch, name) for batch in batches])

    def listed(name: str) -> list[Any]:
        return deepcopy([one for batch in batches for one in getattr(batch, name)])

    if layout.fixed:
        parts = [[part for _, part in layout.parts(batch.observations)] for batch in batches]
        observations = layout.build(lambda leaf: np.concatenate([each[leaf] for each in parts]))
    else:
        observations = tuple(listed("observations"))
    rewards = joined("rewards")
    return Batch(
        envs=np.arange(len(rewards)),
        observations=observations,
        rewards=rewards,
        terminated=joined("terminated"),
        truncated=joined("truncated"),
        infos=listed("infos"),
        final_observations=listed("final_observations"),
        reset_infos=listed("reset_infos"),
    )


def truncation(layout: SpaceLayout, last: Batch, first: Batch, fault: Mapping[str, Any]) -> Batch:
    """A batch that truncates every env of a dead node, marked as synthetic.

    `last` is the dead node's last batch, `first` the new actor's first batch. Infos have `fault`.
    """
    n = len(first.rewards)
    return Batch(
        envs=first.envs,
        observations=first.observations,
        rewards=np.zeros(n, np.float64),
        terminated=np.zeros(n, np.bool_),
        truncated=np.ones(n, np.bool_),
        infos=[{"sc2pool.synthetic": True, "sc2pool.fault": dict(fault)} for _ in range(n)],
        final_observations=[layout.row_of(last.observations, row) for row in range(n)],
        reset_infos=first.reset_infos,
    )
