"""`driver.py ADDRESS` is a Ray driver that prints its games' pids, and plays until it is killed."""

from __future__ import annotations

import json
import sys

import numpy as np

from sc2pool.ray import RaySC2VecEnv

if __name__ == "__main__":
    env = RaySC2VecEnv(n=4, address=sys.argv[1])
    env.reset()
    print(json.dumps([row.pid for row in env.stats().instances]), flush=True)
    while True:
        env.step(np.zeros(4, np.int64))
