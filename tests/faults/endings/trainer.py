"""A training program that a test ends in some way; run as `trainer.py GAME ENDING`.

The program prints a line of JSON at each stage. When the training begins, the line has the pids of
the workers and games. Stable-Baselines3 takes seconds to import, so the program uses no env class.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from sc2pool.config import Limits, PoolConfig
from sc2pool.envs.shared_keywords import task_spec
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.pool.pool import Pool

sys.path.insert(0, str(Path(__file__).parents[1]))  # workers also import the task from this folder
from fault_tasks import Saboteur, harm_action

CONFIGS = {
    # All these limits are shorter than the time for which the test stops the trainer.
    "is stopped": PoolConfig(
        limits=Limits(create_join_s=0.5, reset_s=0.5, step_s=0.5, worker_grace_s=0.5),
        watchdog_interval_s=0.2,
    ),
}
LARGEST_FILE_BYTES = 2048
"""A file of this size can hold a new worker's player, but no fault report with much output."""


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def children() -> list[int]:
    return [process.pid for process in psutil.Process().children(recursive=True)]


def train(pool: Pool) -> None:
    """Step the pool until an interrupt comes."""
    steps = 0
    while True:
        pool.send([0] * pool.n)
        pool.recv()
        steps += 1
        if steps == 10:
            say(stage="playing")


def play_on_a_full_disk(pool: Pool) -> None:
    """Step while games fail one after the other, and no file about the faults can be written."""
    told = []
    for env in range(pool.n):
        pool.send([harm_action("game KILL") if env == other else 0 for other in range(pool.n)])
        batch = pool.recv()
        told.append(batch.infos[env]["sc2pool.fault"])
        for _ in range(3):
            pool.send([0] * pool.n)
            pool.recv()
    say(stage="played on", told=told, **counters(pool))


def counters(pool: Pool) -> dict[str, Any]:
    stats = pool.stats()
    return {"replacements": stats.replacements, "env_steps": stats.env_steps}


def main(game: str, ending: str) -> None:
    pool: Pool | None = None
    config = CONFIGS.get(ending, PoolConfig())
    spec = TaskPlayerSpec(task_spec(Saboteur, game, config))
    try:
        say(stage="constructing")
        pool = Pool([spec] * 2, one_book=True, config=config)
        say(stage="resetting")
        pool.reset()
        ports = [instance.port for instance in pool.stats().instances]
        say(stage="training", children=children(), ports=ports)
        if ending == "exits":
            sys.exit(3)
        if ending == "finds the disk full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE_BYTES, LARGEST_FILE_BYTES))
            play_on_a_full_disk(pool)
        train(pool)
    except KeyboardInterrupt:
        began_s = time.monotonic()
        counted = {} if pool is None else counters(pool)
        if pool is not None:
            pool.close()
        del pool
        close_s = time.monotonic() - began_s
        # A worker whose start was interrupted ends soon after the interrupt.
        psutil.wait_procs(psutil.Process().children(), timeout=1.0)
        say(stage="interrupted", close_s=close_s, children=children(), **counted)


if __name__ == "__main__":
    main(*sys.argv[1:])
