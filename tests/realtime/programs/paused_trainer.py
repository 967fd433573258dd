"""A training program that pauses its games and waits: `paused_trainer.py GAME`.

After it has paused the games, it prints the pids of all its processes, and how many are stopped.
"""

from __future__ import annotations

import json
import sys
import time

import psutil
from realtime_tasks import TellsLoop, WithGrandchildren

from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import gym_specs, task_spec
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.pool.pool import Pool

config = PoolConfig()
games = Pool(
    [TaskPlayerSpec(task_spec(TellsLoop, sys.argv[1], config, realtime=True))],
    one_book=True,
    config=config,
    spares=1,
)
envs = Pool(gym_specs([WithGrandchildren]), one_book=False, config=config)
games.reset()
while games.stats().instances[1].state != "held":  # wait until the spare is stopped as well
    games.send([0])
    games.recv()
envs.reset()
for pool in (games, envs):
    pool.pause()
children = psutil.Process().children(recursive=True)
stopped = sum(child.status() == psutil.STATUS_STOPPED for child in children)
said = {"stage": "paused", "children": [child.pid for child in children], "stopped": stopped}
print(json.dumps(said), flush=True)
time.sleep(600)
