"""A training program for a terminal; its envs print lines, and the program prints the faults."""

from __future__ import annotations

import fcntl
import json
import termios
from functools import partial

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from tests.contract.envs import Mischief

if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    prints = partial(Mischief, "step", partial(print, "a line of the env's", flush=True))
    env = SubprocSC2VecEnv([prints] * 2, config=PoolConfig(watchdog_interval_s=0.2))
    env.reset()
    infos = [info for _ in range(3) for info in env.step([0, 0])[3]]
    env.close()
    faults = [info["sc2pool.fault"]["kind"] for info in infos if "sc2pool.fault" in info]
    print(json.dumps(faults), flush=True)
