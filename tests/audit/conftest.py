"""Audited pools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from tests.support.audit.task import AuditTask

sys.path.insert(0, str(Path(__file__).parent))

SEED = 3
QUICK = PoolConfig(
    limits=Limits(launch_s=30.0, create_join_s=10.0, reset_s=10.0, step_s=1.5, worker_grace_s=1.0),
    watchdog_interval_s=0.25,
    restart=RestartPolicy(per_env=20, per_pool_per_env=20),  # two matches are struck ten times
    envs_per_worker=1,  # `Bad` books the harm done to a worker for one instance
)


@pytest.fixture
def make_env(standin_dir: Path, tmp_path: Path) -> Iterator[Callable[..., SubprocSC2VecEnv]]:
    """Makes pools that play the audit, and closes them."""
    envs: list[SubprocSC2VecEnv] = []

    def make(**options: Any) -> SubprocSC2VecEnv:
        config = replace(QUICK, fault_report_dir=tmp_path)
        defaults = {"n": 3, "task": AuditTask, "game": standin_dir, "seed": SEED, "config": config}
        envs.append(SubprocSC2VecEnv(**(defaults | options)))
        return envs[-1]

    yield make
    for env in envs:
        env.close()
