"""Plays a pool as a training program would, without training: `playing_pool.py GAME N SPARES`.

The program prints a line when every env plays, and ends when its standard input is closed.
"""

from __future__ import annotations

import sys
import threading
from contextlib import closing
from pathlib import Path

from sc2pool import SC2VectorEnv
from sc2pool.config import PoolConfig, RestartPolicy

PATIENT = RestartPolicy(per_env=1000, per_env_window_s=0.5, per_pool_per_env=1000)


def main(game: str, n: int, spares: int) -> None:
    """Play DefeatRoaches at random, a few dozen steps a second."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    config = PoolConfig(restart=PATIENT, watchdog_interval_s=0.2)
    with closing(
        SC2VectorEnv(
            n=n, task="DefeatRoaches", game=Path(game), spares=spares, seed=3, config=config
        )
    ) as env:
        env.reset()
        print('{"stage": "playing"}', flush=True)
        while not over.wait(0.02):
            env.step(env.action_space.sample())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
