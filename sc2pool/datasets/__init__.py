"""Episodes of a pool as a dataset in Minari's format, for learning without a game.

    writer = MinariWriter("sc2pool/MoveToBeacon/mine-v0", env.observation_space, env.action_space)
    collector = EpisodeCollector(writer.add)   # gets every step, calls `add` for whole episodes

The names are imported on first use, so `import sc2pool.datasets` works without Minari.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sc2pool.datasets.recording import EpisodeCollector, MinariWriter, check_dataset, folder_of

__all__ = ["EpisodeCollector", "MinariWriter", "check_dataset", "folder_of"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("sc2pool.datasets.recording"), name)
