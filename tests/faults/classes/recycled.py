"""Plays envs that replace each instance after two episodes; run as `recycled.py CLASS`.

Prints counts of replacements as JSON: for tasks in each mode, and for `env_fns` if possible.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from every_class import MODES, OF_ONE_GAME, Driver, short_episodes

from sc2pool.config import PoolConfig, RecyclePolicy

EPISODES = 2
CONFIG = PoolConfig(recycle=RecyclePolicy(episodes=2))


class OfTheUser(gymnasium.Env[Any, Any]):
    """An env of three-step episodes; observations follow from the seed; `close` writes a line."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.random(2), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.np_random.random(2), 1.0, self.steps == 3, False, {}

    def close(self) -> None:
        with Path(os.environ["CLOSED"]).open("a") as file:
            file.write(f"{os.getpid()}\n")


def count(name: str, mode: str, envs: str) -> dict[str, Any]:
    print(f"{mode} {envs}", file=sys.stderr)  # this line names the run if an error follows
    of_tasks = envs == "tasks"
    keywords = short_episodes(name, 3) if of_tasks else {"env_fns": [OfTheUser, OfTheUser]}
    with closing(Driver(name, mode, config=CONFIG, **keywords)) as driver:
        driver.reset()
        ended = 0
        while ended < EPISODES:
            played = driver.step()
            ended += 0 in played.last
            assert not played.synthetic
        driver.reset()
        replacements = driver.pool.stats().replacements
        # The next reset cuts short the second episode of the next instance.
        driver.reset()
        driver.reset()
        return {"replacements": replacements, "cut": driver.pool.stats().replacements}


def main(name: str) -> None:
    counts = {f"tasks {mode}": count(name, mode, "tasks") for mode in MODES[name]}
    if name not in OF_ONE_GAME:
        # One mode is enough: a user's env is replaced by the same code in all modes.
        counts["env_fns"] = count(name, MODES[name][0], "env_fns")
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
