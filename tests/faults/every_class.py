"""One env of each class, made in the same words; for tests of what all classes promise.

An importable module: the programs of these tests run in the environments of several libraries.
"""

from __future__ import annotations

from typing import Any

import sc2pool

LIBRARIES = {
    "SC2GymEnv": "",
    "SC2VectorEnv": "",
    "StarCraft2Env": "",
    "SubprocSC2VecEnv": "stable_baselines3",
    "SC2ParallelEnv": "pettingzoo",
    "SC2TianshouVectorEnv": "tianshou",
    "RaySC2VecEnv": "ray",
}
"""The library that each class needs; empty for none."""


def make(name: str, **keywords: Any) -> Any:
    """An env of the class with this name: of one game if there is no other keyword."""
    if name == "RaySC2VecEnv":
        from sc2pool.ray import RaySC2VecEnv

        return RaySC2VecEnv(**{"n": 1, **keywords})
    if name in ("SC2GymEnv", "SC2ParallelEnv", "StarCraft2Env"):
        return getattr(sc2pool, name)(**keywords)
    return getattr(sc2pool, name)(**{"n": 1, **keywords})
