"""sc2pool: a pool of StarCraft II games behind one vectorised environment.

The public names load on first use, so `import sc2pool` imports neither torch nor Stable-Baselines3
nor python-sc2. The built-in tasks are registered with gymnasium when both sc2pool and gymnasium
have been imported, in either order. Nothing else is imported here, because the import of sc2pool
must be short: while it lasts, a worker does not notice that its trainer has ended, and Ctrl-C in a
command shows a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sc2pool.envs.registration import register_with_gymnasium

if TYPE_CHECKING:
    from typing import Any

    from sc2pool import commands as commands, errors as errors, smac as smac, units as units
    from sc2pool.config import (
        Computer as Computer,
        Limits as Limits,
        PoolConfig as PoolConfig,
        RecyclePolicy as RecyclePolicy,
        ReplayPolicy as ReplayPolicy,
        RestartPolicy as RestartPolicy,
    )
    from sc2pool.datasets.callback import MinariCallback as MinariCallback
    from sc2pool.envs.callbacks import (
        PoolStatsCallback as PoolStatsCallback,
        SnapshotCallback as SnapshotCallback,
    )
    from sc2pool.envs.gym import SC2GymEnv as SC2GymEnv
    from sc2pool.envs.pettingzoo import SC2ParallelEnv as SC2ParallelEnv
    from sc2pool.envs.sb3 import (
        DummySC2VecEnv as DummySC2VecEnv,
        SubprocSC2VecEnv as SubprocSC2VecEnv,
    )
    from sc2pool.envs.tianshou import SC2TianshouVectorEnv as SC2TianshouVectorEnv
    from sc2pool.envs.vector import SC2VectorEnv as SC2VectorEnv
    from sc2pool.errors import ConfigError as ConfigError, SC2PoolError as SC2PoolError
    from sc2pool.pool.statistics import PoolStats as PoolStats
    from sc2pool.ray.vec_env import RaySC2VecEnv as RaySC2VecEnv
    from sc2pool.realtime.async_off_policy import (
        AsyncDQN as AsyncDQN,
        AsyncSAC as AsyncSAC,
        AsyncTD3 as AsyncTD3,
    )
    from sc2pool.realtime.async_ppo.learner import AsyncPPO as AsyncPPO
    from sc2pool.realtime.env import (
        ActionInFlightObservation as ActionInFlightObservation,
        RealTimeEnv as RealTimeEnv,
        StepResult as StepResult,
    )
    from sc2pool.realtime.gate import PausableEnv as PausableEnv, PauseGate as PauseGate
    from sc2pool.realtime.sb3 import PauseCallback as PauseCallback
    from sc2pool.realtime.screen.window import GameWindow as GameWindow
    from sc2pool.tasks.bot import PolicyBot as PolicyBot, RLBotAI as RLBotAI
    from sc2pool.tasks.opponents.snapshots import SnapshotStore as SnapshotStore
    from sc2pool.tasks.task import Task as Task, TeamTask as TeamTask

__version__ = "0.2.0"

_NAMES = {
    "sc2pool.config": "Computer Limits PoolConfig RecyclePolicy ReplayPolicy RestartPolicy",
    "sc2pool.datasets.callback": "MinariCallback",
    "sc2pool.envs.callbacks": "PoolStatsCallback SnapshotCallback",
    "sc2pool.envs.gym": "SC2GymEnv",
    "sc2pool.envs.pettingzoo": "SC2ParallelEnv",
    "sc2pool.envs.sb3": "DummySC2VecEnv SubprocSC2VecEnv",
    "sc2pool.envs.tianshou": "SC2TianshouVectorEnv",
    "sc2pool.envs.vector": "SC2VectorEnv",
    "sc2pool.errors": "ConfigError SC2PoolError",
    "sc2pool.pool.statistics": "PoolStats",
    "sc2pool.ray.vec_env": "RaySC2VecEnv",
    "sc2pool.realtime.async_off_policy": "AsyncDQN AsyncSAC AsyncTD3",
    "sc2pool.realtime.async_ppo.learner": "AsyncPPO",
    "sc2pool.realtime.env": "ActionInFlightObservation RealTimeEnv StepResult",
    "sc2pool.realtime.gate": "PausableEnv PauseGate",
    "sc2pool.realtime.sb3": "PauseCallback",
    "sc2pool.realtime.screen.window": "GameWindow",
    "sc2pool.tasks.bot": "PolicyBot RLBotAI",
    "sc2pool.tasks.opponents.snapshots": "SnapshotStore",
    "sc2pool.tasks.task": "Task TeamTask",
}
"""The public names, by the module that defines them."""

_MOVED = {"QueuePair": "sc2pool.tasks.queue_pair", "StarCraft2Env": "sc2pool.smac"}
"""The new module of each name that is no longer public here; the next release removes the names."""

_MODULES = ("commands", "errors", "smac", "units")

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

# `from sc2pool import *` must work without tianshou, PettingZoo and Ray.
__all__ = sorted(  # noqa: PLE0605
    {*_MODULES, *_HOME} - {"RaySC2VecEnv", "SC2ParallelEnv", "SC2TianshouVectorEnv"}
)


register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES and name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    from sc2pool.optional import needed_for  # noqa: PLC0415

    if name in _MOVED:
        import warnings  # noqa: PLC0415

        home = _MOVED[name]
        warnings.warn(f"import {name} from {home}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(home), name)
    with needed_for(f"sc2pool.{name}"):
        if name in _MODULES:
            return import_module(f"sc2pool.{name}")
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *_HOME])
