"""A training program on a terminal: its envs print, and it says which faults it saw."""

from __future__ import annotations

import fcntl
import json
import termios
from typing import Any

import gymnasium
from gymnasium import spaces

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig


class Prints(gymnasium.Env[Any, Any]):
    """Prints a line in each step."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(1)

    def reset(self, **_: Any) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, _: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        print("a line of the env's", flush=True)
        return 0, 0.0, False, False, {}


if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    env = SubprocSC2VecEnv([Prints] * 2, config=PoolConfig(watchdog_interval_s=0.2))
    env.reset()
    infos = [info for _ in range(3) for info in env.step([0, 0])[3]]
    env.close()
    faults = [info["sc2pool.fault"]["kind"] for info in infos if "sc2pool.fault" in info]
    print(json.dumps(faults), flush=True)
