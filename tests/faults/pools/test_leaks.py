"""Replacing instances again and again leaves nothing of those before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fault_pools import LENIENT, MakeEnv, processes_of, step

from sc2pool.config import PoolConfig
from tests.support.audit.belongings import (
    descriptors,
    leases_held,
    our_processes,
    shared_mappings,
    temp_folders,
)
from tests.support.systems import strike

ROUNDS = 2
"""The games of all envs are killed, then their workers."""


def belongings(run_temp: Path) -> dict[str, object]:
    """How much of each there is: in this process, below it, and in the temp folder."""
    processes = our_processes(run_temp)
    (run,) = run_temp.glob("sc2pool-run-*")
    return {
        "descriptors": descriptors(run_temp),
        "queue pairs": shared_mappings().total(),
        "processes": len(processes),
        "temp folders": len([path for path in run.iterdir() if path.is_dir()]),
        "game folders": len(temp_folders(run_temp)),
        "leases": len(leases_held(processes)),
    }


def test_recycles_of_all_envs_at_once(
    begun: MakeEnv, wait_for: Callable[..., None], run_temp: Path
) -> None:
    env = begun(config=PoolConfig(restart=LENIENT))
    step(env, 0, 0)
    before = belongings(run_temp)
    for number in range(ROUNDS):
        target = ("game", "worker")[number % 2]
        for index in range(2):
            strike(processes_of(env, index)[target].pid, "KILL")
        assert step(env, 0, 0)[2].all()
        step(env, 0, 0)
    assert sum(env.stats().recycles.values()) == 2 * ROUNDS
    # The games of killed workers are reaped by the system, when it comes to it.
    wait_for(lambda: belongings(run_temp) == before)
