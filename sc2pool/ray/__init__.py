"""sc2pool on Ray: games on the nodes of a cluster, for RLlib and for Stable-Baselines3.

A name's module is imported when the name is first used, so `import sc2pool.ray` works without Ray.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sc2pool.utilities import needed_for

if TYPE_CHECKING:
    from sc2pool.ray.cluster import connect
    from sc2pool.ray.rllib import GamesCallback, configure
    from sc2pool.ray.vec_env import RaySC2VecEnv
    from sc2pool.ray.viewer import Seen, Viewers
    from sc2pool.realtime.rllib import RLlibPauseCallback

__all__ = [
    "GamesCallback",
    "RLlibPauseCallback",
    "RaySC2VecEnv",
    "Seen",
    "Viewers",
    "configure",
    "connect",
]

_HOME = {
    "GamesCallback": "sc2pool.ray.rllib",
    "RLlibPauseCallback": "sc2pool.realtime.rllib",
    "RaySC2VecEnv": "sc2pool.ray.vec_env",
    "Seen": "sc2pool.ray.viewer",
    "Viewers": "sc2pool.ray.viewer",
    "configure": "sc2pool.ray.rllib",
    "connect": "sc2pool.ray.cluster",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for(f"sc2pool.ray.{name}"):
        return getattr(import_module(_HOME[name]), name)
