"""`RLBotAI` on games of the pool, and under python-sc2's own `run_game`.

Every class here travels to the workers by value, as the classes of a training script do.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest

from sc2pool import QueuePair, SubprocSC2VecEnv
from sc2pool.errors import ConfigError, ObservationError, UserCodeError
from sc2pool.game.installation import Installation
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def vec(game_installation: Installation) -> Iterator[Callable[..., SubprocSC2VecEnv]]:
    with ExitStack() as stack:

        def make(task: Any, n: int = 1, **keywords: Any) -> SubprocSC2VecEnv:
            made = SubprocSC2VecEnv(n=n, task=task, game=game_installation.root, **keywords)
            stack.callback(made.close)
            return made

        yield make


class Coroutines:
    """Every hook is a coroutine; episodes are four steps long."""

    max_loops = 32
    gain = 1.0

    async def observe(self):
        return super().observe()

    async def reward(self):
        return self.gain

    async def terminated(self):
        return False

    async def action_masks(self):
        return np.ones(8, np.bool_)


class AsyncBot(Coroutines, MoveToBeaconBot):
    """A bot of such hooks."""

    async def act(self, action):
        await asyncio.sleep(0)
        # A query to the game, in the midst of a step.
        self.placeable = await self.client.query_pathing(self.units[0], self.units[0].position)
        super().act(action)

    async def info(self):
        return {"loop": self.state.game_loop}


class AsyncTask(Coroutines, MoveToBeacon):
    """The same on the fast path."""

    async def on_start(self):
        super().on_start()

    async def act(self, action):
        await asyncio.sleep(0)
        return super().act(action)

    async def info(self):
        return {"loop": self.observation.game_loop}


def test_a_bot_plays_what_the_fast_task_plays(vec):
    actions = np.random.default_rng(0).integers(0, 8, 250)
    runs = []
    for task in (MoveToBeacon, MoveToBeaconBot):
        made = vec(task, seed=21)
        run = [made.reset()]
        for action in actions:
            observations, rewards, dones, infos = made.step([action])
            run.append((observations, rewards, dones, infos[0].get("terminal_observation")))
        runs.append(run)
        made.close()
    np.testing.assert_equal(runs[1], runs[0])
    assert sum(dones.any() for _, _, dones, _ in runs[0][1:]) == 1, "into the second episode"


@pytest.mark.parametrize("task", [AsyncBot, AsyncTask])
def test_every_hook_may_be_a_coroutine(vec, task):
    made = vec(task)
    made.reset()
    for step in range(1, 9):
        _, rewards, dones, infos = made.step([step % 8])
        assert rewards.tolist() == [1.0]
        assert dones.tolist() == [step % 4 == 0]
        assert infos[0]["TimeLimit.truncated"] == dones[0]
        assert "loop" in infos[0]
        assert made.env_method("action_masks")[0].all()


class NotesItsEnds(MoveToBeaconBot):
    """Episodes of three steps."""

    max_loops = 24
    ends: ClassVar[list[str]] = []
    """Of all episodes in a worker."""

    async def on_end(self, game_result):
        self.ends.append(game_result.name)
        await super().on_end(game_result)


class EndsByItself(NotesItsEnds):
    max_loops = None

    def terminated(self):
        return self.state.game_loop >= 24


@pytest.mark.parametrize("task", [NotesItsEnds, EndsByItself])
def test_on_end_is_called_if_the_task_ends_the_episode(vec, task):
    made = vec(task)
    made.reset()
    dones = [bool(made.step([0])[2][0]) for _ in range(6)]
    assert dones == [False, False, True] * 2
    assert made.get_attr("ends") == [["Tie", "Tie"]]


@pytest.mark.parametrize("task", [AsyncBot, AsyncTask])
def test_attributes_and_methods_of_the_running_object(vec, task):
    made = vec(task, n=2)
    made.set_attr("gain", 3.0, indices=1)
    made.reset()
    for _ in range(5):
        assert made.step([0, 0])[1].tolist() == [1.0, 3.0]
    assert made.get_attr("gain") == [1.0, 3.0]
    with pytest.raises(AttributeError):
        made.env_method("no_such_thing")


class FailsToAct(MoveToBeaconBot):
    def act(self, action):
        raise LookupError("no such marine")


class SeesNaN(MoveToBeaconBot):
    def observe(self):
        return np.full(5, np.nan, np.float32)


class ActsWithANumber(MoveToBeacon):
    def act(self, action):
        return 3


class DoesNothing(MoveToBeacon):
    def act(self, action):
        return None


def test_none_is_no_command(vec):
    made = vec(DoesNothing, seed=3)
    before = made.reset()
    for _ in range(3):
        after = made.step([0])[0]
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    ("task", "error", "told"),
    [
        (ActsWithANumber, UserCodeError, "env 0.*stepping: .*act must return a list .*; got 3"),
        (FailsToAct, UserCodeError, "env 0.*stepping: LookupError: no such marine"),
        (SeesNaN, ObservationError, "env 0, resetting: observation is not finite"),
    ],
)
def test_error_of_a_task_is_raised(vec, task, error, told):
    made = vec(task)
    with pytest.raises(error, match=told):
        made.reset()
        made.step([0])


def test_a_bot_wants_a_queue_pair_or_a_policy():
    for given in ({}, {"queue_pair": QueuePair.local(), "policy": min}):
        with pytest.raises(ConfigError, match="MoveToBeaconBot takes either"):
            MoveToBeaconBot(**given)


# python-sc2's `run_game` takes over the process's signals and logging, so it has one of its own.
RUN_GAME = """
import threading

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot

from sc2pool import QueuePair
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.minigames.scripted import move_to_beacon


class Short(MoveToBeaconBot):
    max_loops = 240


def play(bot):
    run_game(maps.get("MoveToBeacon"), [Bot(Race.Terran, bot)], realtime=False)
    assert bot.episode_over


{learner}
print("steps", steps, "return", total > 0, "truncated", truncated)
"""

WITH_A_PAIR = """
pair = QueuePair.local()
steps, total, truncated = 0, 0.0, False


def learn():
    global steps, total, truncated
    transition = pair.receive(30)
    while not (transition.terminated or transition.truncated):
        pair.send(move_to_beacon(transition.observation))
        transition = pair.receive(30)
        steps += 1
        total += transition.reward
    truncated = transition.truncated


learner = threading.Thread(target=learn)
learner.start()
play(Short(pair))
learner.join(10)
"""

WITH_A_POLICY = """
steps = 0


async def policy(observation):
    global steps
    steps += 1
    return move_to_beacon(observation)


bot = Short(policy=policy)
play(bot)
total, truncated = bot.state.score.score, bot.state.game_loop >= 240
"""


@pytest.mark.parametrize("learner", [WITH_A_PAIR, WITH_A_POLICY], ids=["queue pair", "policy"])
def test_the_same_class_plays_under_run_game(game_installation, learner):
    done = subprocess.run(
        [sys.executable, "-c", RUN_GAME.replace("{learner}", learner)],
        env={**os.environ, "SC2PATH": str(game_installation.root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "steps 30 return True truncated True"
