"""A training program that a test kills; run as `trainer_of_envs.py STATE`.

The trainer's env has started a program, which has started another program. When STATE is reached,
the trainer prints the pids of both programs, of its worker, and of its own fork. STATE is what the
worker does: it "steps", "is paused", "is stopped" or "hangs" (in C code that blocks its other
threads). In the STATE "has forked", the trainer has a child that inherits its open files.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import gymnasium
import psutil
from gymnasium import spaces

from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import gym_specs
from sc2pool.pool.pool import Pool

A_PROGRAM = "sleep 600 & echo started; wait"
HANG = 1


class StartsPrograms(gymnasium.Env[int, int]):
    """An env around programs that the pool does not know of."""

    action_space = observation_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._program = subprocess.Popen(["sh", "-c", A_PROGRAM], stdout=subprocess.PIPE)
        assert self._program.stdout is not None
        self._program.stdout.readline()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action == HANG:
            os.kill(os.getppid(), signal.SIGUSR1)
            ctypes.PyDLL(None).sleep(600)  # unlike CDLL, PyDLL keeps the interpreter's lock
        return 0, 0.0, False, False, {}


def main(state: str) -> None:
    hangs = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: hangs.set())
    pool = Pool(gym_specs([StartsPrograms]), one_book=False, config=PoolConfig())
    pool.reset()
    children = [process.pid for process in psutil.Process().children(recursive=True)]
    fork = None
    if state == "is paused":
        pool.pause()
    elif state == "is stopped":
        psutil.Process(pool.stats().instances[0].worker_pid).suspend()
    elif state == "hangs":
        pool.send([HANG])
        hangs.wait()
    elif state == "has forked":
        fork = os.fork()
        if fork == 0:
            signal.pause()
    print(json.dumps({"stage": "training", "children": children, "fork": fork}), flush=True)
    while state == "steps":
        pool.send([0])
        pool.recv()
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
