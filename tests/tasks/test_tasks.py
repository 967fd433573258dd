"""Tasks on a game: mini-games, `Melee`, a pool's `step_mul`, and units created in `on_start`.

On the stand-in, the scores of the mini-games are within known bounds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2, debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import RLBotAI, Task
from sc2pool.errors import UserCodeError
from sc2pool.tasks.melee import Melee, play_melee
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.minigames.scripted import SCRIPTED
from sc2pool.tasks.minigames.town_games import BuildMarines
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.registry import BUILT_IN, resolve_task
from sc2pool.units import Kind, select, unit_id
from tests.support.programs import run

ALWAYS_THE_SAME = {"CollectMineralsAndGas", "BuildMarines"}
"""Tasks that are played with only one seed, because they take long and are hardly random."""
GOOD_STEPS = {"CollectMineralsAndGas", "BuildMarines"}
"""Tasks in which random actions score well, because each action is a whole step of a town."""
LONG = {"BuildMarines", "BuildMarinesImage", "MeleeImage"}
"""Tasks that are played for many steps."""
IMAGES = [name for name in BUILT_IN if name.endswith("Image")]
TOO_GOOD = {
    "DefeatZerglingsAndBanelings": "survivors join the next wave, so good targets pay more and more"
}
"""The reason for each task in which the scripted player beats the grandmaster by over a fifth."""


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", SCRIPTED)
def test_scripted_player_scores_like_a_good_human(task_name, play):
    seeds = [0] if task_name in ALWAYS_THE_SAME else [0, 1, 2]
    episodes = play(task_name, SCRIPTED[task_name], seeds=seeds)
    scores = [sum(transition.reward for transition in episode) for episode in episodes]
    published = PUBLISHED[task_name]
    assert 0.85 * published.human <= np.mean(scores), scores
    assert task_name in TOO_GOOD or np.mean(scores) <= 1.2 * published.grandmaster, scores


@pytest.fixture(scope="module")
def at_random(play) -> Callable[[str], list[list[Transition]]]:
    """Plays a task's episodes with random actions, and returns their transitions."""

    @cache
    def episodes(task_name: str) -> list[list[Transition]]:
        actions = resolve_task(task_name).action_space
        actions.seed(0)
        seeds = [0] if task_name in IMAGES else [0, 1]
        return play(task_name, lambda _: actions.sample(), seeds=seeds)

    return episodes


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", [name for name in SCRIPTED if name not in GOOD_STEPS])
def test_random_player_scores_no_more_than_published(task_name, at_random):
    scores = [sum(one.reward for one in episode) for episode in at_random(task_name)]
    assert max(scores) <= PUBLISHED[task_name].random_max, scores


@pytest.mark.parametrize("task_name", [name for name in (*SCRIPTED, *IMAGES) if name not in LONG])
def test_episodes(task_name, at_random):
    task = resolve_task(task_name)
    for first, *rest in at_random(task_name):
        assert first.reward == 0
        assert all(task.observation_space.contains(t.observation) for t in (first, *rest))
        ends = [t.terminated or t.truncated for t in rest]
        assert ends.index(True) == len(ends) - 1
        assert len(rest) <= task.max_loops // task.step_mul
        if not {"Roaches", "Zerglings"} & set(re.findall("[A-Z][a-z]+", task_name)):
            # Some marines live until the end, if they never fight.
            assert len(rest) == task.max_loops // task.step_mul


class RandomPossible(BuildMarines):
    """A town that takes random actions, each of them allowed by the mask.

    With short steps, such actions would never save enough money for a barracks.
    """

    step_mul = 8
    max_loops = 4800

    def on_start(self):
        super().on_start()
        self.rng = np.random.default_rng(0)

    def act(self, action):
        return super().act(self.rng.choice(np.flatnonzero(self.action_masks())))


@pytest.mark.standin("how fast a town grows is calibrated")
def test_random_possible_actions_train_marines(play):
    (episode,) = play(RandomPossible, lambda _: 0, seeds=[0])
    assert sum(transition.reward for transition in episode) >= 10


def outcome(result: str) -> dict[str, str]:
    """The info of an episode that ended with this result."""
    return {"sc2pool.result": result, "sc2pool.opponent": "computer-VeryEasy"}


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_the_scripted_player_beats_the_easiest_computer(play):
    for episode in play("Melee", play_melee, seeds=[0, 1]):
        assert episode[-1].terminated
        assert episode[-1].info == outcome("win")
        assert episode[-1].reward > 0.9
        assert 1.0 < sum(transition.reward for transition in episode) < 1.5


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_who_does_nothing_is_beaten(play):
    (episode,) = play("Melee", lambda _: 0, seeds=[0])
    assert episode[-1].terminated
    assert episode[-1].reward == -1
    assert episode[-1].info == outcome("loss")


@pytest.mark.parametrize("task_name", ["Melee", "MeleeImage"])
def test_a_random_player_stays_in_the_space(task_name, play):
    task = resolve_task(task_name)
    task.action_space.seed(1)
    (episode,) = play(task_name, lambda _: task.action_space.sample(), seeds=[1], max_loops=1600)
    assert all(task.observation_space.contains(one.observation) for one in episode)
    assert len(episode) == 101
    assert [one.info for one in episode] == [{}] * 100 + [outcome("undecided")]


def test_the_last_info_of_a_bot_tells_the_result_too(play):
    class Idle(RLBotAI):
        map_name = Melee.map_name
        opponents = Melee.opponents
        action_space = Melee.action_space
        observation_space = spaces.Box(0, 1, (1,), np.float32)
        max_loops = 64

        def act(self, action):
            pass

        def observe(self):
            return np.zeros(1, np.float32)

    (episode,) = play(Idle, lambda _: 0, seeds=[0])
    assert [one.info for one in episode] == [{}] * 8 + [outcome("undecided")]


class TellingTask(MoveToBeacon):
    def on_start(self):
        super().on_start()
        self.at_start = (self.step_mul, self.max_loops)

    def info(self):
        loop = self.observation.game_loop
        return {"at_start": self.at_start, "step_mul": self.step_mul, "loop": loop}


class TellingBot(MoveToBeaconBot):
    async def on_start(self):
        await super().on_start()
        self.at_start = (self.step_mul, self.max_loops)

    def info(self):
        loop = self.state.game_loop
        return {"at_start": self.at_start, "step_mul": self.step_mul, "loop": loop}


@pytest.mark.parametrize("task", [TellingTask, TellingBot])
def test_they_hold_for_every_object(play, task):
    for episode in play(task, lambda _: 0, seeds=[1, 2], step_mul=4, max_loops=20):
        infos = [transition.info for transition in episode]
        assert [info["loop"] for info in infos] == [0, 4, 8, 12, 16, 20]
        assert {(info["at_start"], info["step_mul"]) for info in infos} == {((4, 20), 4)}
        assert [t.truncated for t in episode] == [False] * 5 + [True]
        assert not any(t.terminated for t in episode)


ROOT = Path(__file__).parents[2]
LIMIT_LOOPS = 40


class Crowd(Task):
    """Observes its marines, after `on_start` has added three."""

    map_name = "MoveToBeacon"
    step_mul = 8
    max_loops = LIMIT_LOOPS
    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Discrete(2)

    async def on_start(self):
        self.began_at = self.lazy_observation.game_loop
        born = debug_pb2.DebugCreateUnit(
            unit_type=unit_id("Marine"), owner=1, pos=common_pb2.Point2D(x=30, y=30), quantity=3
        )
        births = sc_pb.RequestDebug(debug=[debug_pb2.DebugCommand(create_unit=born)])
        reply = await self.game.request(sc_pb.Request(debug=births))
        assert not reply.error
        await self.advance()

    def observe(self):
        (marines,) = select(self.lazy_observation, Kind("Marine"))
        return np.array([len(marines)], np.float32)

    def act(self, action):
        return []

    def info(self):
        return {"loops": self.lazy_observation.game_loop - self.began_at}


class Still:
    """A policy that stands still, and prints its observations."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        print("SEES", int(observation[0]), flush=True)
        return np.array(0), state


@pytest.mark.parametrize("realtime", [False, True])
def test_units_are_in_the_first_observation(play, realtime):
    ((first, *_, last),) = play(Crowd, lambda _: 0, seeds=[1], realtime=realtime)
    assert first.observation.tolist() == [4]
    assert first.info["loops"] >= 2
    assert last.truncated
    if not realtime:
        assert (first.info["loops"], last.info["loops"]) == (2, LIMIT_LOOPS + 2)


class Expanding(RLBotAI):
    """Observes whether python-sc2 has found places for towns before `on_start`."""

    map_name = "CollectMineralsAndGas"
    max_loops = LIMIT_LOOPS
    observation_space = Crowd.observation_space
    action_space = Crowd.action_space

    async def on_start(self):
        self.has_places = len(self.expansion_locations_list) > 0

    def observe(self):
        return np.array([self.has_places], np.float32)

    def act(self, action):
        pass


UNDER_RUN_GAME = """
import sys

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot
from sc2pool import PolicyBot
from tests.tasks import test_tasks

task = getattr(test_tasks, sys.argv[1])
bot = Bot(Race.Terran, PolicyBot(task, test_tasks.Still()))
run_game(maps.get(task.map_name), [bot], realtime=False)
"""


@pytest.mark.parametrize(("task", "seen"), [(Crowd, 4), (Expanding, 1)])
def test_what_is_in_the_first_observation_under_run_game(game_installation, task, seen):
    done = run(
        sys.executable,
        *("-c", UNDER_RUN_GAME, task.__name__),
        env={**os.environ, "SC2PATH": str(game_installation.root), "PYTHONPATH": str(ROOT)},
    )
    sees = [line for line in done.stdout.splitlines() if line.startswith("SEES")]
    assert set(sees) == {f"SEES {seen}"}, done.stderr


class Match(Crowd):
    map_name = "MarineDuel"
    players = 2


def test_a_match_cannot_advance_alone(vec):
    env = vec(Match)
    with pytest.raises(UserCodeError, match="both games of a match step together"):
        env.reset()
