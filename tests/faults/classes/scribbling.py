"""A trainer that writes into every array that it gets; run as `scribbling.py CLASS TRANSITIONS`.

It plays every mode of the class, with several kinds of observations, and kills workers and games.
The trainer fails if an observation that is shown again after a fault differs from the first time.
It prints the numbers of transitions and faults.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from every_class import MODES, OF_ONE_GAME, Driver, short_episodes
from gymnasium import spaces

from sc2pool.config import PoolConfig, RestartPolicy
from tests.support.audit.scribble import arrays_in, scribble

CONFIG = PoolConfig(restart=RestartPolicy(10**6, 0.1, 10**6))
N = 2
SPACES: dict[str, spaces.Space[Any]] = {
    "dict": spaces.Dict(
        a=spaces.Box(0, 1e6, (3, 2), np.float64),
        b=spaces.Tuple([spaces.Discrete(9), spaces.Box(0, 200, (4,), np.uint8)]),
    ),
    "no layout": spaces.Sequence(spaces.Box(0, 1e6, (2,), np.float32)),
}

SPACES_OF: dict[str, list[tuple[str, str]]] = {
    "SubprocSC2VecEnv": [("", "dict"), ("", "no layout")],
    "SC2VectorEnv": [("SameStep", "no layout")],
    "SC2TianshouVectorEnv": [("", "dict")],
}
"""For each class: pairs of a mode and a space of `env_fns`, which are played besides a task."""


class OfTheUser(gymnasium.Env[Any, Any]):
    """An env with episodes of about six steps and random observations."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: str) -> None:
        self.observation_space = SPACES[space]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        over = self.steps >= 6
        info = {"array": np.ones(2)} if self.steps % 2 else {}
        return self.observation_space.sample(), 1.0, over, False, info


def keywords_of(name: str, envs: str) -> dict[str, Any]:
    if envs != "task":
        return {"env_fns": [lambda: OfTheUser(envs)] * N}
    keywords = short_episodes(name, 6)
    return keywords if name in OF_ONE_GAME else keywords | {"n": N}


class Killer(threading.Thread):
    """A thread that kills workers and games of the pool at random instants."""

    def __init__(self, driver: Driver, every_s: float) -> None:
        super().__init__(daemon=True)
        self._driver = driver
        self._every_s = every_s
        self._random = random.Random(0)
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.wait(self._every_s * self._random.uniform(0.5, 1.5)):
            with suppress(Exception):  # the env may be closed, or may not have begun
                rows = [row for row in self._driver.pool.stats().instances if row.state in LIVING]
                row = self._random.choice(rows)
                pid = self._random.choice([row.worker_pid, row.pid or row.worker_pid])
                time.sleep(self._random.random() * 0.01)
                os.kill(pid, signal.SIGKILL)


LIVING = ("ready", "playing", "stepping", "over")


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(np.ravel(one), np.ravel(other))


def is_scribbled(observation: Any) -> bool:
    """True if one of the observation's arrays has the values that `scribble` writes."""
    copy = deepcopy(observation)
    scribble(copy)
    pairs = zip(arrays_in(observation), arrays_in(copy), strict=True)
    return any(
        given.dtype != object and given.size and same(given, all_7) for given, all_7 in pairs
    )


def play(name: str, mode: str, envs: str, transitions: int) -> dict[str, Any]:
    print(f"{mode} {envs}", file=sys.stderr)  # this line names the run if an error follows
    driver = Driver(name, mode, config=CONFIG, **keywords_of(name, envs))
    killer = Killer(driver, every_s=0.4)
    played = ended = faults = 0
    try:
        shown = deepcopy(driver.reset().observations)
        killer.start()
        while played < transitions or not faults:
            brought = driver.step()
            for learner, last in brought.last.items():
                ended += 1
                assert not is_scribbled(last), (learner, last)
                if learner in brought.synthetic:
                    faults += 1
                    assert same(last, shown[learner]), (learner, last, shown[learner])
            for learner, observation in brought.observations.items():
                assert not is_scribbled(observation), (learner, observation)
                if learner in brought.unchanged:
                    assert same(observation, shown[learner]), (learner, observation)
            played += len(brought.observations)
            shown.update(deepcopy(brought.observations))
            scribble(brought.given)
    finally:
        killer.ends.set()
        if killer.is_alive():
            killer.join()
        driver.close()
    return {"mode": mode, "envs": envs, "played": played, "ended": ended, "faults": faults}


def main(name: str, transitions: str) -> None:
    cases = [*((mode, "task") for mode in MODES[name]), *SPACES_OF.get(name, [])]
    print(json.dumps([play(name, *case, int(transitions)) for case in cases]))


if __name__ == "__main__":
    main(*sys.argv[1:])
