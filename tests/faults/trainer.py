"""A training program that a test ends in some way: `trainer.py GAME ENDING`.

At each stage it prints a line of JSON, with the pids of its workers and games once it trains.
It uses the pool without a face, for Stable-Baselines3 takes seconds to import.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import psutil
from fault_tasks import Saboteur

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import task_spec
from sc2pool.pool.pool import Pool


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def children() -> list[int]:
    return [process.pid for process in psutil.Process().children(recursive=True)]


def train(pool: Pool) -> None:
    """Steps until it is interrupted."""
    while True:
        pool.send([0] * pool.n)
        pool.receive()


def main(game: str, ending: str) -> None:
    pool: Pool | None = None
    config = PoolConfig()
    spec = task_spec(Saboteur, game, config)
    say(stage="constructing")
    try:
        pool = Pool([spec] * 2, tickets=True, config=config)
        say(stage="resetting")
        pool.reset()
        say(stage="training", children=children())
        if ending == "exits":
            sys.exit(3)
        if ending == "raises":
            raise RuntimeError("a bug in the training script")
        train(pool)
    except KeyboardInterrupt:
        began_s = time.monotonic()
        if pool is not None:
            pool.close()
        del pool
        close_s = time.monotonic() - began_s
        # A worker whose start was interrupted is ended as soon as it has been started.
        psutil.wait_procs(psutil.Process().children(), timeout=1.0)
        say(stage="interrupted", close_s=close_s, children=children())


if __name__ == "__main__":
    main(*sys.argv[1:])
