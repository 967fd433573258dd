"""`RLBotAI` on games of the pool, and under python-sc2's own `run_game`.

Every class here is sent to the workers by value, like the classes of a training script.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import ClassVar

import cloudpickle
import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError, UserCodeError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.queue_pair import QueuePair
from tests.support.programs import run

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Coroutines:
    """A mixin whose hooks are all coroutines; episodes are four steps long."""

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
    """A bot whose hooks are coroutines."""

    async def act(self, action):
        await asyncio.sleep(0)
        # A query to the game in the middle of a step.
        self.placeable = await self.client.query_pathing(self.units[0], self.units[0].position)
        super().act(action)

    async def info(self):
        return {"loop": self.state.game_loop}


class AsyncTask(Coroutines, MoveToBeacon):
    """A `Task` whose hooks are coroutines."""

    async def on_start(self):
        super().on_start()

    async def act(self, action):
        await asyncio.sleep(0)
        return super().act(action)

    async def info(self):
        return {"loop": self.observation.game_loop}


def test_a_bot_plays_what_the_fast_task_plays(play):
    def run(task):
        draws = np.random.default_rng(0)
        return play(task, lambda _: int(draws.integers(8)), seeds=[21, 22], max_loops=1000)

    np.testing.assert_equal(run(MoveToBeaconBot), run(MoveToBeacon))


@pytest.mark.parametrize("task", [AsyncBot, AsyncTask])
def test_every_hook_may_be_a_coroutine(vec, task):
    made = vec(task)
    made.set_attr("gain", 3.0)
    made.reset()
    for step in range(1, 9):
        _, rewards, dones, infos = made.step([step % 8])
        assert rewards.tolist() == [3.0]
        assert dones.tolist() == [step % 4 == 0]
        assert infos[0]["TimeLimit.truncated"] == dones[0]
        assert "loop" in infos[0]
        assert made.env_method("action_masks")[0].all()
    assert made.get_attr("gain") == [3.0]


class NotesItsEnds(MoveToBeaconBot):
    """A bot that notes the ends of its episodes, which have three steps."""

    max_loops = 24
    ends: ClassVar[list[str]] = []
    """The ends of all episodes."""

    async def on_end(self, game_result):
        self.ends.append(game_result.name)
        await super().on_end(game_result)


def test_on_end_is_called_if_the_task_ends_the_episode(play):
    NotesItsEnds.ends.clear()
    episodes = play(NotesItsEnds, lambda _: 0, seeds=[1, 2])
    assert [len(transitions) for transitions in episodes] == [4, 4]
    assert NotesItsEnds.ends == ["Tie", "Tie"]


class FailsToAct(MoveToBeaconBot):
    def act(self, action):
        raise LookupError("no such marine")


def test_exception_of_a_bot_is_no_fault_of_the_game(play):
    with pytest.raises(LookupError, match="no such marine"):
        play(FailsToAct, lambda _: 0, seeds=[1])


class ShadowsSupply(MoveToBeaconBot):
    """Defines an attribute whose name python-sc2 itself sets early in a game."""

    @property
    def supply_left(self):
        return 3


class ShadowsPlayer(MoveToBeaconBot):
    """Defines an attribute whose name python-sc2 itself sets from a message of the game."""

    @property
    def player_id(self):
        return 3


@pytest.mark.parametrize("task", [ShadowsSupply, ShadowsPlayer])
def test_a_name_that_python_sc2_cannot_set_is_no_fault_of_the_game(play, task):
    with pytest.raises(AttributeError, match="no setter") as raised:
        play(task, lambda _: 0, seeds=[1])
    if task is ShadowsPlayer:
        assert "set attributes of ShadowsPlayer" in raised.value.__notes__[0]


class Leaves(NotesItsEnds):
    """Leaves the game in the second step."""

    max_loops = 80

    async def act(self, action):
        if self.state.game_loop == 8:
            await self.give_up()
            assert not self.client.in_game

    async def give_up(self):
        await self.client.leave()


class LeavesAtTheStart(Leaves):
    async def on_start(self):
        await super().on_start()
        await self.give_up()


class LooksAfterwards(Leaves):
    """Requests the result before the pool requests it; a game reports its result only once."""

    async def give_up(self):
        await super().give_up()
        await self.client.step(1)
        seen = await self.client._execute(observation=sc_pb.RequestObservation())
        assert seen.observation.player_result[0].result == sc_pb.Defeat


class IsNotHeeded(Leaves):
    """Marks itself as a bot that has left the game, although the game continues."""

    async def give_up(self):
        self.client.has_left = True


@pytest.mark.parametrize(
    ("task", "steps"),
    [(Leaves, 2), (LeavesAtTheStart, 1), (LooksAfterwards, 2), (IsNotHeeded, 2)],
)
def test_a_bot_that_leaves_is_defeated(play, task, steps):
    NotesItsEnds.ends.clear()
    for episode in play(task, lambda _: 0, seeds=[1, 2]):
        ends = [(transition.terminated, transition.truncated) for transition in episode]
        assert ends == [(False, False)] * steps + [(True, False)]
    assert NotesItsEnds.ends == ["Defeat", "Defeat"]


class Listens(MoveToBeaconBot):
    """Sends queries of its own to the game, and keeps the chat that the pool reports."""

    max_loops = 32
    heard: ClassVar[list[str]] = []

    async def act(self, action):
        self.heard += [one.message for one in self.state.chat]
        if self.state.game_loop == 8:
            await self.client.chat_send("hello", False)
            await self.client.step(1)
            seen = await self.client.observation()
            assert seen.observation.chat[0].message == "hello"


def test_what_a_bot_sees_beside_the_pool_it_is_shown_all_the_same(play):
    Listens.heard.clear()
    play(Listens, lambda _: 0, seeds=[1])
    assert Listens.heard == ["hello"]


class Asks(MoveToBeacon):
    """Sends its game a request that only the pool may send."""

    asked: ClassVar[sc_pb.Request]

    async def act(self, action):
        await self.game.request(self.asked)


@pytest.mark.parametrize(
    "kind",
    ["create_game", "join_game", "restart_game", "start_replay", "leave_game", "quit"],
)
def test_a_task_does_not_end_its_game(play, kind):
    Asks.asked = sc_pb.Request()
    getattr(Asks.asked, kind).SetInParent()
    with pytest.raises(UserCodeError, match=f"cannot request {kind} of its game"):
        play(Asks, lambda _: 0, seeds=[1])


def test_a_task_in_real_time_does_not_wait_for_its_game(play):
    Asks.asked = sc_pb.Request(observation=sc_pb.RequestObservation(game_loop=10_000))
    with pytest.raises(UserCodeError, match="cannot request observation of its game"):
        play(Asks, lambda _: 0, seeds=[1], realtime=True)


class PlaysByItself(MoveToBeaconBot):
    async def on_step(self, iteration):
        """Never wait for an action."""


class EndsForItself(MoveToBeaconBot):
    max_loops = None  # without this limit, the game ends the episode

    async def on_end(self, game_result):
        """Put no transition."""


class BegunForItself(MoveToBeaconBot):
    def __init__(self, queue_pair):
        """Do not pass the queue pair to the base class."""


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (PlaysByItself, r"PlaysByItself.on_step\(\) put no transition; it must call super"),
        (EndsForItself, r"EndsForItself.on_end\(\) put no transition; it must call super"),
        (BegunForItself, r"BegunForItself.__init__\(\) must call super"),
    ],
)
def test_hooks_that_do_not_call_their_base(play, task, told):
    with pytest.raises(UserCodeError, match=told):
        play(task, lambda _: 0, seeds=[1], step_mul=64)


def test_a_bot_wants_a_queue_pair_or_a_policy():
    for given in ({}, {"queue_pair": QueuePair.local(), "policy": min}):
        with pytest.raises(ConfigError, match="MoveToBeaconBot takes either"):
            MoveToBeaconBot(**given)


# python-sc2's `run_game` takes over signals and logging, so it runs in a process of its own.
RUN_GAME = """
import threading

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot

from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.minigames.scripted import move_to_beacon


class Short(MoveToBeaconBot):
    max_loops = 240


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
bot = Short(pair)
run_game(maps.get("MoveToBeacon"), [Bot(Race.Terran, bot)], realtime=False)
assert bot.episode_over
assert bot.state.game_loop < 250, "it leaves the game at the episode's end"
learner.join(10)
print("steps", steps, "return", total > 0, "truncated", truncated)
"""


def test_the_same_class_plays_under_run_game(game_installation):
    """`run_game` plays the class, and another thread is the learner, as in `docs/tasks.md`."""
    environment = os.environ | {"SC2PATH": str(game_installation.root)}
    done = run(sys.executable, "-c", RUN_GAME, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "steps 30 return True truncated True"
