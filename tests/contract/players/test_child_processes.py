"""A script whose children make pools of the script's own task, as searches over settings do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.programs import run

SCRIPT = """
import multiprocessing
import sys

import numpy as np
from gymnasium import spaces

from sc2pool import SC2VectorEnv, Task


class Note:
    def __init__(self, steps):
        self.steps = steps


class Walk(Task):
    map_name = "MoveToBeacon"
    max_loops = 80
    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Discrete(2)
    steps = 0

    def act(self, action):
        self.steps += 1

    def observe(self):
        return np.full(1, self.steps, np.float32)

    def reward(self):
        return 1.0

    def info(self):
        return {"note": Note(self.steps)}


def trial(results):
    env = SC2VectorEnv(n=1, task=Walk, game=sys.argv[2])
    env.reset()
    observations, _, _, _, infos = env.step([0])
    note = infos["note"][0]
    results.put((float(observations[0, 0]), note.steps, type(note) is Note))
    env.close()


if __name__ == "__main__":
    method = multiprocessing.get_context(sys.argv[1])
    results = method.SimpleQueue()
    child = method.Process(target=trial, args=(results,))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
    print(results.get())
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_makes_a_pool_of_the_scripts_task(
    standin_dir: Path, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)
    ran = run(sys.executable, script, method, standin_dir)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "(1.0, 1, True)\n"
