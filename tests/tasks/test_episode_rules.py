"""Tasks and bots follow the same rules in the pool and under python-sc2's loop."""

from __future__ import annotations

import json
import os
import sys
from typing import ClassVar

import pytest

from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from tests.support.programs import run

MAP_ENDS_AT = 1920
ENDS = {  # the cause of the end: max_loops, ends_from, last loop, (terminated, truncated)
    "time limit": (640, None, 640, (False, True)),
    "task": (MAP_ENDS_AT, 960, 960, (True, False)),
    "task at the time limit": (640, 640, 640, (True, True)),
    "game": (None, None, MAP_ENDS_AT, (True, False)),
    "game at the time limit": (MAP_ENDS_AT, None, MAP_ENDS_AT, (False, True)),
    "task at the game's end": (MAP_ENDS_AT, MAP_ENDS_AT, MAP_ENDS_AT, (True, True)),
}
UNDER_PYTHON_SC2 = ("task", "game")
"""Under python-sc2, each of these two causes of an end has its own code; all others share code."""
FIRST = ("observe", "info", "action_masks")
LATER = ("observe", "reward", "terminated", "info", "action_masks")


class Recorder:
    """Ends its episodes as `ends` says, and records which hook is called on which loop."""

    step_mul = 320
    ends: ClassVar[list[str]]
    calls: ClassVar[list[list[str]]]
    """The recorded calls of each episode."""

    def begin(self):
        self.max_loops, self.ends_from, *_ = ENDS[self.ends[self.episode.number]]
        self.calls.append([])

    def note(self, hook):
        self.calls[-1].append(f"{hook} {self.loop()}")

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
    def on_start(self):
        super().on_start()
        self.begin()

    def loop(self):
        return self.lazy_observation.game_loop


class RecordingBot(Recorder, MoveToBeaconBot):
    async def on_start(self):
        await super().on_start()
        self.begin()

    def loop(self):
        return self.state.game_loop


def task_for(base, ends):
    return type(base.__name__, (base,), {"ends": list(ends), "calls": []})


def expected_calls(ends):
    return [
        [
            *(f"{hook} 0" for hook in FIRST),
            *(f"{hook} {loop}" for loop in range(320, ENDS[end][2] + 1, 320) for hook in LATER),
        ]
        for end in ends
    ]


@pytest.mark.standin("its mini-games end at a known loop")
@pytest.mark.parametrize("base", [RecordingTask, RecordingBot])
def test_in_the_pool(play, base):
    task = task_for(base, ENDS)
    episodes = play(task, lambda _: 0, seeds=[1] * len(ENDS))
    for end, (*others, last) in zip(ENDS, episodes, strict=True):
        assert (last.terminated, last.truncated) == ENDS[end][3], end
        assert not any(t.terminated or t.truncated for t in others), end
    assert task.calls == expected_calls(ENDS)


# python-sc2's `run_game` takes over signals and logging, so it runs in a process of its own.
RUN_GAMES = """
import importlib.util, json, sys

(path,) = sys.argv[1:]
spec = importlib.util.spec_from_file_location("the_test", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot

from sc2pool import PolicyBot


class Still:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 0, None


told = {}
for base in (module.RecordingTask, module.RecordingBot):
    task = module.task_for(base, module.UNDER_PYTHON_SC2)
    bot, flags = PolicyBot(task, Still()), []
    for _ in task.ends:
        run_game(maps.get("MoveToBeacon"), [Bot(Race.Terran, bot)], realtime=False, random_seed=1)
        last = bot._pair._last
        flags.append([last.terminated, last.truncated])
    told[base.__name__] = flags, task.calls
print("TOLD", json.dumps(told))
"""


@pytest.mark.standin("its mini-games end at a known loop")
def test_under_python_sc2(standin_dir):
    environment = os.environ | {"SC2PATH": str(standin_dir)}
    done = run(sys.executable, "-c", RUN_GAMES, __file__, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.rpartition("TOLD")[2])
    flags = [list(ENDS[end][3]) for end in UNDER_PYTHON_SC2]
    calls = expected_calls(UNDER_PYTHON_SC2)
    assert told == {"RecordingTask": [flags, calls], "RecordingBot": [flags, calls]}
