"""A pool's configuration for measurements that kill games on purpose."""

from __future__ import annotations

from pathlib import Path

from sc2pool.config import PoolConfig, RestartPolicy


def lenient(fault_report_dir: Path) -> PoolConfig:
    """Accepts any number of recycles and never waits before a launch."""
    return PoolConfig(
        restart=RestartPolicy(per_env=10**6, per_env_window_s=0.1, per_pool_per_env=10**6),
        fault_report_dir=fault_report_dir,
    )
