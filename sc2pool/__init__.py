"""sc2pool: a pool of StarCraft II games behind one vectorised environment.

The public names load on first use, so `import sc2pool` imports neither torch nor
Stable-Baselines3 nor python-sc2. The built-in tasks are registered with gymnasium when both
packages are imported, in either order. Nothing else is imported here: the command can end quietly
after Ctrl-C only once this is done.
"""

from __future__ import annotations

from sc2pool.envs.registration import register_with_gymnasium

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all this
if TYPE_CHECKING:
    from typing import Any

    from sc2pool.config import (
        Computer,
        Limits,
        PoolConfig,
        RecyclePolicy,
        ReplayPolicy,
        RestartPolicy,
    )
    from sc2pool.envs.callbacks import PoolStatsCallback, SnapshotCallback
    from sc2pool.envs.gym import SC2GymEnv
    from sc2pool.envs.pettingzoo import SC2ParallelEnv as SC2ParallelEnv
    from sc2pool.envs.sb3 import SubprocSC2VecEnv
    from sc2pool.envs.smac import StarCraft2Env
    from sc2pool.envs.tianshou import SC2TianshouVectorEnv as SC2TianshouVectorEnv
    from sc2pool.envs.vector import SC2VectorEnv
    from sc2pool.errors import (
        ActionError,
        ClosedError,
        ConfigError,
        CrashLoopError,
        ForkedPoolError,
        GameFault,
        InterruptedCallError,
        LearnerError,
        ObservationError,
        PauseError,
        SampleTimeoutError,
        SC2PoolError,
        UserCodeError,
    )
    from sc2pool.pool.statistics.stats import PoolStats
    from sc2pool.realtime.async_ppo.learner import AsyncPPO
    from sc2pool.realtime.sb3 import PauseDuringTraining
    from sc2pool.tasks import commands
    from sc2pool.tasks.bot import RLBotAI
    from sc2pool.tasks.opponents.snapshots import SnapshotStore
    from sc2pool.tasks.policy_bot import PolicyBot
    from sc2pool.tasks.queue_pair import QueuePair
    from sc2pool.tasks.task import Task
    from sc2pool.tasks.teams.team_task import TeamTask

__version__ = "0.2.0.dev0"

# Without SC2TianshouVectorEnv and SC2ParallelEnv: `from sc2pool import *` shall not need tianshou
# or PettingZoo.
__all__ = [
    "ActionError",
    "AsyncPPO",
    "ClosedError",
    "Computer",
    "ConfigError",
    "CrashLoopError",
    "ForkedPoolError",
    "GameFault",
    "InterruptedCallError",
    "LearnerError",
    "Limits",
    "ObservationError",
    "PauseDuringTraining",
    "PauseError",
    "PolicyBot",
    "PoolConfig",
    "PoolStats",
    "PoolStatsCallback",
    "QueuePair",
    "RLBotAI",
    "RecyclePolicy",
    "ReplayPolicy",
    "RestartPolicy",
    "SC2GymEnv",
    "SC2PoolError",
    "SC2VectorEnv",
    "SampleTimeoutError",
    "SnapshotCallback",
    "SnapshotStore",
    "StarCraft2Env",
    "SubprocSC2VecEnv",
    "Task",
    "TeamTask",
    "UserCodeError",
    "commands",
]

_HOME = {
    "ActionError": "sc2pool.errors",
    "AsyncPPO": "sc2pool.realtime.async_ppo.learner",
    "ClosedError": "sc2pool.errors",
    "Computer": "sc2pool.config",
    "ConfigError": "sc2pool.errors",
    "CrashLoopError": "sc2pool.errors",
    "ForkedPoolError": "sc2pool.errors",
    "GameFault": "sc2pool.errors",
    "InterruptedCallError": "sc2pool.errors",
    "LearnerError": "sc2pool.errors",
    "Limits": "sc2pool.config",
    "ObservationError": "sc2pool.errors",
    "PauseDuringTraining": "sc2pool.realtime.sb3",
    "PauseError": "sc2pool.errors",
    "PolicyBot": "sc2pool.tasks.policy_bot",
    "PoolConfig": "sc2pool.config",
    "PoolStats": "sc2pool.pool.statistics.stats",
    "PoolStatsCallback": "sc2pool.envs.callbacks",
    "QueuePair": "sc2pool.tasks.queue_pair",
    "RLBotAI": "sc2pool.tasks.bot",
    "RecyclePolicy": "sc2pool.config",
    "ReplayPolicy": "sc2pool.config",
    "RestartPolicy": "sc2pool.config",
    "SC2GymEnv": "sc2pool.envs.gym",
    "SC2ParallelEnv": "sc2pool.envs.pettingzoo",
    "SC2PoolError": "sc2pool.errors",
    "SC2TianshouVectorEnv": "sc2pool.envs.tianshou",
    "SC2VectorEnv": "sc2pool.envs.vector",
    "SampleTimeoutError": "sc2pool.errors",
    "SnapshotCallback": "sc2pool.envs.callbacks",
    "SnapshotStore": "sc2pool.tasks.opponents.snapshots",
    "StarCraft2Env": "sc2pool.envs.smac",
    "SubprocSC2VecEnv": "sc2pool.envs.sb3",
    "Task": "sc2pool.tasks.task",
    "TeamTask": "sc2pool.tasks.teams.team_task",
    "UserCodeError": "sc2pool.errors",
    "commands": "sc2pool.tasks.commands",
}


register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    from sc2pool.optional import needed_for  # noqa: PLC0415

    with needed_for(f"sc2pool.{name}"):
        home = importlib.import_module(_HOME[name])
        return home if _HOME[name].endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
