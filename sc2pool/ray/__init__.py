"""sc2pool on Ray: games on the nodes of a cluster, for RLlib and for Stable-Baselines3.

The names load on first use: `import sc2pool.ray` needs no Ray.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sc2pool.optional import needed_for

if TYPE_CHECKING:
    from sc2pool.ray.vec_env import RaySC2VecEnv

__all__ = ["RaySC2VecEnv"]

_HOME = {"RaySC2VecEnv": "sc2pool.ray.vec_env"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for(f"sc2pool.ray.{name}"):
        return getattr(import_module(_HOME[name]), name)
