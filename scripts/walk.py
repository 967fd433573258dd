"""Follows one step of `SubprocSC2VecEnv(n=2, task="MoveToBeacon")` file by file.

Run as `python scripts/walk.py`, this script prints two tables. The first table lists the files of
sc2pool that one `env.step` enters in the trainer. The second table lists the files that one step of
a `Task` enters in a worker. The files are in the order in which they are entered, with the number
of Python calls in each file. Run the script before and after the modules are arranged differently.

A call is a `call` event of `sys.setprofile` in a file of sc2pool. A `call` event occurs when a
function is entered, when a coroutine or generator is entered or resumed, and for a comprehension (a
function in Python 3.11). Calls of C functions and calls in other packages or threads do not count.

A step in the trainer is one `env.step`. In the worker a step lasts from one call of `Task.act` to
the next. All steps are in the middle of an episode. The tables show the median of several steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

import sc2pool
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

N = 2
N_WARM_UP_STEPS = 20
"""The number of uncounted steps, which fill caches and pass the first steps of the episodes."""
N_STEPS = 15
"""The number of counted steps; an episode has 240 steps."""
PACKAGE = str(Path(sc2pool.__file__).parent) + "/"

Walk = dict[str, int]
"""The number of calls in each file, in the order in which the files were first entered."""


class Follower:
    """Counts the calls between `begin` and `end` in the calling thread."""

    def __init__(self) -> None:
        self.walks: list[Walk] = []

    def begin(self) -> None:
        walk: Walk = {}

        def on_event(frame: FrameType, event: str, _: Any) -> None:
            file = frame.f_code.co_filename
            if event == "call" and file.startswith(PACKAGE):
                name = file.removeprefix(PACKAGE)
                walk[name] = walk.get(name, 0) + 1

        self.walks.append(walk)
        sys.setprofile(on_event)

    def end(self) -> None:
        sys.setprofile(None)


class FollowedMoveToBeacon(MoveToBeacon):
    """A task that counts the calls in its worker from the start of one `act` to the next."""

    def on_start(self) -> None:
        self.follower = Follower()
        self.steps = 0
        super().on_start()

    def act(self, action: int) -> Any:
        self.follower.end()
        self.steps += 1
        if N_WARM_UP_STEPS < self.steps <= N_WARM_UP_STEPS + N_STEPS:
            self.follower.begin()
        return super().act(action)


def walk_trainer(env: VecEnv) -> Walk:
    """The calls that a step makes in this process, the trainer."""
    follower = Follower()

    def followed_step(actions: list[int]) -> None:
        follower.begin()
        env.step(actions)
        follower.end()

    play(env, env.step, N_WARM_UP_STEPS)
    play(env, followed_step, N_STEPS)
    return median(follower.walks)


def walk_worker(env: VecEnv) -> Walk:
    """The calls that a step makes in the first env's worker; `env` plays `FollowedMoveToBeacon`."""
    play(env, env.step, N_WARM_UP_STEPS + N_STEPS + 1)
    return median(env.get_attr("follower", [0])[0].walks)


def play(env: VecEnv, step: Callable[[list[int]], Any], steps: int) -> None:
    for count in range(steps):
        step([count % 8] * env.num_envs)


def median(walks: list[Walk]) -> Walk:
    return sorted(walks, key=lambda walk: sum(walk.values()))[len(walks) // 2]


def table(title: str, walk: Walk) -> str:
    head = f"{title}: {len(walk)} files, {sum(walk.values())} calls"
    return "\n".join([head, *(f"{calls:5}  {file}" for file, calls in walk.items())])


def main() -> None:
    sides = (
        ("Trainer, n=2", MoveToBeacon, walk_trainer),
        ("Worker, a Task", FollowedMoveToBeacon, walk_worker),
    )
    for title, task, walk in sides:
        with closing(sc2pool.SubprocSC2VecEnv(n=N, task=task)) as env:
            env.reset()
            print(table(title, walk(env)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
