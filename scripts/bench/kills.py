"""For measurements that kill games: a pool's configuration, and the wait for spares."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from sc2pool.config import PoolConfig, RestartPolicy

READY_WITHIN_S = 60.0


def lenient(fault_report_dir: Path) -> PoolConfig:
    """A configuration that accepts any number of failures and never waits before a launch."""
    return PoolConfig(
        restart=RestartPolicy(per_env=10**6, per_env_window_s=0.1, per_pool_per_env=10**6),
        fault_report_dir=fault_report_dir,
    )


def step_until_spares_are_ready(env: Any) -> None:
    """Step a `SubprocSC2VecEnv` until its spares are ready.

    Raises:
        TimeoutError: The spares do not become ready within `READY_WITHIN_S`.
    """
    n = env.num_envs
    until_s = time.monotonic() + READY_WITHIN_S
    while any(one.state != "ready" for one in env.stats().instances[n:]):
        if time.monotonic() > until_s:
            raise TimeoutError("the spares do not become ready")
        env.step(np.zeros(n, np.int64))
