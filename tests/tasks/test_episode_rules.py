"""One rule for every way to play: a task and a bot, in the pool and under python-sc2's loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot

MAP_ENDS_AT = 1920


class Recorder:
    """Notes which hook is called on which loop."""

    step_mul = 320
    ends_from: int | None = None
    calls: list[str]

    def note(self, hook):
        self.calls.append(f"{hook} {self.loop()}")

    def observe(self):
        self.note("observe")
        return super().observe()

    def reward(self):
        self.note("reward")
        return super().reward()

    def terminated(self):
        self.note("terminated")
        return self.ends_from is not None and self.loop() >= self.ends_from

    def info(self):
        self.note("info")
        return {}

    def action_masks(self):
        self.note("action_masks")
        return [True] * 8


class RecordingTask(Recorder, MoveToBeacon):
    def loop(self):
        return self.lazy_observation.game_loop


class RecordingBot(Recorder, MoveToBeaconBot):
    def loop(self):
        return self.state.game_loop


ENDS = {  # by what ends the episode: max_loops, ends_from, last loop, (terminated, truncated)
    "time limit": (640, None, 640, (False, True)),
    "task": (MAP_ENDS_AT, 960, 960, (True, False)),
    "task at the time limit": (640, 640, 640, (True, True)),
    "game": (None, None, MAP_ENDS_AT, (True, False)),
    "game at the time limit": (MAP_ENDS_AT, None, MAP_ENDS_AT, (False, True)),
    "task at the game's end": (MAP_ENDS_AT, MAP_ENDS_AT, MAP_ENDS_AT, (True, True)),
}
FIRST = ("observe", "info", "action_masks")
LATER = ("observe", "reward", "terminated", "info", "action_masks")


def task_for(base, end):
    max_loops, ends_from, *_ = ENDS[end]
    attributes = {"max_loops": max_loops, "ends_from": ends_from, "calls": []}
    return type(base.__name__, (base,), attributes)


def expected_calls(end):
    last_loop = ENDS[end][2]
    later = [f"{hook} {loop}" for loop in range(320, last_loop + 1, 320) for hook in LATER]
    return [f"{hook} 0" for hook in FIRST] + later


@pytest.mark.standin("its mini-games end at a known loop")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("base", [RecordingTask, RecordingBot])
def test_in_the_pool(play, base, end):
    task = task_for(base, end)
    ((*others, last),) = play(task, lambda _: 0, seeds=[1])
    assert (last.terminated, last.truncated) == ENDS[end][3]
    assert not any(t.terminated or t.truncated for t in others)
    assert task.calls == expected_calls(end)


# python-sc2's `run_game` takes over the process's signals and logging, so it has one of its own.
RUN_GAMES = """
import importlib.util, json, sys

path, base = sys.argv[1:]
spec = importlib.util.spec_from_file_location("the_test", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot

from sc2pool import PolicyBot
from sc2pool.tasks.queue_pair import QueuePair


class Still:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 0, None


told = {}
for end in module.ENDS:
    task = module.task_for(getattr(module, base), end)
    bot = PolicyBot(task, Still())
    run_game(maps.get("MoveToBeacon"), [Bot(Race.Terran, bot)], realtime=False, random_seed=1)
    last = bot._pair._last
    told[end] = [[last.terminated, last.truncated], task.calls]
print("TOLD", json.dumps(told))
"""


@pytest.mark.standin("its mini-games end at a known loop")
@pytest.mark.parametrize("base", [RecordingTask, RecordingBot])
def test_under_python_sc2(standin_dir, base):
    done = subprocess.run(
        [sys.executable, "-c", RUN_GAMES, __file__, base.__name__],
        env={**os.environ, "SC2PATH": str(standin_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.rpartition("TOLD")[2])
    assert told == {end: [list(ENDS[end][3]), expected_calls(end)] for end in ENDS}
