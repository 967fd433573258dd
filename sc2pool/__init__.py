"""sc2pool: a pool of StarCraft II games behind one vectorised environment.

The public names load on first use, so `import sc2pool` imports neither torch nor
Stable-Baselines3 nor python-sc2. The built-in tasks are registered with gymnasium once it is
imported too, whichever comes first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sc2pool.envs.registration import register_with_gymnasium
from sc2pool.optional import needed_for

if TYPE_CHECKING:
    from sc2pool.envs.callbacks import PoolStatsCallback
    from sc2pool.envs.gym import SC2GymEnv
    from sc2pool.envs.sb3 import SubprocSC2VecEnv
    from sc2pool.envs.vector import SC2VectorEnv
    from sc2pool.pool.report.stats import PoolStats
    from sc2pool.realtime.async_ppo.learner import AsyncPPO
    from sc2pool.realtime.sb3 import PauseDuringTraining
    from sc2pool.tasks.bot import RLBotAI
    from sc2pool.tasks.policy_bot import PolicyBot
    from sc2pool.tasks.queue_pair import QueuePair
    from sc2pool.tasks.task import Task

__version__ = "0.1.0"

__all__ = [
    "AsyncPPO",
    "PauseDuringTraining",
    "PolicyBot",
    "PoolStats",
    "PoolStatsCallback",
    "QueuePair",
    "RLBotAI",
    "SC2GymEnv",
    "SC2VectorEnv",
    "SubprocSC2VecEnv",
    "Task",
]

_HOME = {
    "AsyncPPO": "sc2pool.realtime.async_ppo.learner",
    "PauseDuringTraining": "sc2pool.realtime.sb3",
    "PolicyBot": "sc2pool.tasks.policy_bot",
    "PoolStats": "sc2pool.pool.report.stats",
    "PoolStatsCallback": "sc2pool.envs.callbacks",
    "QueuePair": "sc2pool.tasks.queue_pair",
    "RLBotAI": "sc2pool.tasks.bot",
    "SC2GymEnv": "sc2pool.envs.gym",
    "SC2VectorEnv": "sc2pool.envs.vector",
    "SubprocSC2VecEnv": "sc2pool.envs.sb3",
    "Task": "sc2pool.tasks.task",
}


register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for(f"sc2pool.{name}"):
        return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
