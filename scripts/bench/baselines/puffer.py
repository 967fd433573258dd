"""PufferLib's `Multiprocessing`, if it is installed, stepped like the others.

Its trainer and workers spin while they wait, the workers for half a second after the last action;
so all other sides wait for `SETTLE_S` before a round. Its batches are views of its shared memory,
which the next step overwrites; they are not copied.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np

SETTLE_S = 0.7


def is_installed() -> bool:
    """True if it can be compared with."""
    return importlib.util.find_spec("pufferlib") is not None


class PufferVec:
    """n envs, each in a worker of its own."""

    def __init__(self, make: Callable[[], Any], n: int, start_method: str) -> None:
        from pufferlib import vector  # noqa: PLC0415
        from pufferlib.emulation import GymnasiumPufferEnv  # noqa: PLC0415

        multiprocessing.set_start_method(start_method, force=True)
        self._vec = vector.make(
            GymnasiumPufferEnv,
            env_kwargs={"env_creator": make},
            backend=vector.Multiprocessing,
            num_envs=n,
            num_workers=n,
            batch_size=n,
            overwork=True,  # more workers than cores, like the other sides
        )

    def reset(self) -> None:
        self._vec.async_reset()
        self._vec.recv()

    def step(self, actions: np.ndarray) -> Any:
        """Observations first."""
        self._vec.send(actions)
        return self._vec.recv()

    def close(self) -> None:
        self._vec.close()
