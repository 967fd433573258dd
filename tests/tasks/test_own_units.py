"""A task that creates units in `on_start` sees them in its first observation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2, debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import Task
from sc2pool.errors import UserCodeError
from sc2pool.units import Kind, select, unit_id
from tests.support.programs import run

ROOT = Path(__file__).parents[2]
LIMIT_LOOPS = 40


class Crowd(Task):
    """Observes its marines, to which it adds three."""

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
    """A policy that prints what it sees."""

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


UNDER_RUN_GAME = """
from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot
from sc2pool import PolicyBot
from tests.tasks.test_own_units import Crowd, Still

bot = Bot(Race.Terran, PolicyBot(Crowd, Still()))
run_game(maps.get(Crowd.map_name), [bot], realtime=False)
"""


def test_units_are_in_the_first_observation_under_run_game(game_installation):
    done = run(
        sys.executable,
        "-c",
        UNDER_RUN_GAME,
        env={**os.environ, "SC2PATH": str(game_installation.root), "PYTHONPATH": str(ROOT)},
    )
    sees = [line for line in done.stdout.splitlines() if line.startswith("SEES")]
    assert sees
    assert set(sees) == {"SEES 4"}, done.stderr


class Match(Crowd):
    map_name = "MarineDuel"
    players = 2


def test_a_match_cannot_advance_alone(vec):
    env = vec(Match)
    with pytest.raises(UserCodeError, match="both games of a match step together"):
        env.reset()
