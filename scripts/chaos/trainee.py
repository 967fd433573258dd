"""A training program that `kills.py` starts with the arguments GAME and N, and ends from outside.

The program makes, plays and closes pools, one after the other, and prints its stage. It uses the
pool without an adapter, because Stable-Baselines3 takes seconds to import.
"""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import count

import numpy as np

from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import task_spec
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.pool.pool import Pool
from tests.support.audit.audited.task import AuditTask

STEPS = 100


def play(game: str, n: int) -> None:
    """Make a pool, play it and close it."""
    config = PoolConfig()
    print("constructing", flush=True)
    spec = TaskPlayerSpec(task_spec(AuditTask, game, config))
    with closing(Pool([spec] * n, one_book=True, config=config, spares=1)) as pool:
        print("playing", flush=True)
        pool.reset()
        for number in range(STEPS):
            pool.send(np.array([[number, 0]] * n))
            pool.recv()
        print("closing", flush=True)


def main(game: str, n: str) -> None:
    for _ in count():
        play(game, int(n))


if __name__ == "__main__":
    main(*sys.argv[1:])
