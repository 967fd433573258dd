"""Replacing instances again and again leaves nothing of those before."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil
from fault_pools import LENIENT, MakeEnv, processes_of, step
from fault_tasks import strike

from sc2pool.config import PoolConfig

ROUNDS = 2
"""The games of all envs are killed, then their workers."""


def belongings() -> dict[str, int]:
    """How much of each there is: in this process, below it, and in the temp folder."""
    mappings = Path("/proc/self/maps").read_text().splitlines()
    processes = psutil.Process().children(recursive=True)
    (run,) = Path(tempfile.gettempdir()).glob("sc2pool-run-*")
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "queue pairs": sum("sc2pool" in line and "memfd" in line for line in mappings),
        "processes": len(processes),
        "temp folders": len([path for path in run.iterdir() if path.is_dir()]),
        "game folders": len(list(run.glob("*/sc2pool-game-*"))),
        "leases": sum(holds_a_lease(process.pid) for process in processes),
    }


def holds_a_lease(pid: int) -> bool:
    links = Path(f"/proc/{pid}/fd").iterdir()
    return any("/sc2pool-ports" in str(link.readlink()) for link in links)


def test_recycles_of_all_envs_at_once(make_env: MakeEnv, wait_for: Callable[..., None]) -> None:
    env = make_env(config=PoolConfig(restart=LENIENT))
    env.reset()
    step(env, 0, 0)
    before = belongings()
    for number in range(ROUNDS):
        target = ("game", "worker")[number % 2]
        for index in range(2):
            strike(processes_of(env, index)[target].pid, "KILL")
        assert step(env, 0, 0)[2].all()
        step(env, 0, 0)
    assert sum(env.stats().recycles.values()) == 2 * ROUNDS
    # The games of killed workers are reaped by the system, when it comes to it.
    wait_for(lambda: belongings() == before)
