"""A training program that waits to be killed: `supertux_trainer.py paused|alone`.

It pauses two games of a pool, or plays one game without a pool. It prints the pids and program
names of all processes that it has started.
"""

from __future__ import annotations

import json
import sys
import time

import psutil

from examples.supertux.env import SuperTuxEnv
from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import gym_specs
from sc2pool.pool.pool import Pool

if sys.argv[1] == "alone":
    env = SuperTuxEnv()
    env.reset()
else:
    pool = Pool(gym_specs([SuperTuxEnv] * 2), one_book=False, config=PoolConfig())
    pool.reset()
    pool.pause()
children = psutil.Process().children(recursive=True)
print(json.dumps({child.pid: child.name() for child in children}), flush=True)
time.sleep(600)
