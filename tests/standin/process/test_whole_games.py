"""Whole episodes: the same bytes under a seed, the right pace in real time, other clients."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

MAPS = ["MoveToBeacon", "CollectMineralShards", "DefeatRoaches", "DefeatZerglingsAndBanelings"]
MOVE, ATTACK = 16, 23


def _requests(observed: sc_pb.Observation, command, rng) -> list[sc_pb.Request]:
    """A burst for a random target, always the same for the same observation and generator."""
    units = observed.raw_data.units
    mine = [unit for unit in units if unit.owner == 1]
    others = [unit for unit in units if unit.owner != 1]
    target = others[int(rng.integers(len(others)))]
    ability = ATTACK if target.owner == 2 else MOVE
    order = command(mine, ability, (target.pos.x, target.pos.y))
    return [
        sc_pb.Request(action=sc_pb.RequestAction(actions=[order]), id=1),
        sc_pb.Request(step=sc_pb.RequestStep(count=8), id=2),
        sc_pb.Request(observation=sc_pb.RequestObservation(), id=3),
    ]


@pytest.mark.parametrize("name", MAPS)
def test_same_seed_same_bytes_in_two_processes(launch, name, command):
    def play(wire) -> list[bytes]:
        wire.start(name, seed=11)
        rng = np.random.default_rng(3)
        bytes_seen = []
        for episode in range(2):
            if episode:
                wire.send_frame(
                    sc_pb.Request(restart_game=sc_pb.RequestRestartGame()).SerializeToString()
                )
                bytes_seen.append(wire.receive())
            observed = wire.ask(observation=sc_pb.RequestObservation()).observation.observation
            for _ in range(30):
                for request in _requests(observed, command, rng):
                    wire.send_frame(request.SerializeToString())
                bytes_seen += [wire.receive() for _ in range(3)]
                reply = sc_pb.Response.FromString(bytes_seen[-1])
                if reply.status != sc_pb.in_game:
                    break
                observed = reply.observation.observation
        return bytes_seen

    assert play(launch().connect()) == play(launch().connect())


@pytest.mark.parametrize("name", MAPS)
def test_seeds_differ(session_for, name):
    layouts = set()
    for seed in range(4):
        session = session_for()
        session.start(name, seed=seed)
        layouts.add(session.observe().SerializeToString())
    assert len(layouts) == 4


@pytest.mark.timing
def test_real_time_runs_by_itself_and_waits_for_a_loop(game):
    wire = game.connect()
    began = time.monotonic()
    wire.start(realtime=True)
    target = 34
    reply = wire.ask(observation=sc_pb.RequestObservation(game_loop=target))
    elapsed_s = time.monotonic() - began
    assert reply.observation.observation.game_loop >= target
    rate = reply.observation.observation.game_loop / elapsed_s
    assert rate == pytest.approx(22.4, rel=0.1)
    # What follows a waiting observation waits behind it, and nothing gets lost.
    ahead = reply.observation.observation.game_loop + 5
    for request in (
        sc_pb.Request(observation=sc_pb.RequestObservation(game_loop=ahead), id=1),
        sc_pb.Request(observation=sc_pb.RequestObservation(), id=2),
        sc_pb.Request(step=sc_pb.RequestStep(count=1), id=3),
    ):
        wire.send_frame(request.SerializeToString())
    replies = [sc_pb.Response.FromString(wire.receive()) for _ in range(3)]
    assert [reply.id for reply in replies] == [1, 2, 3]
    assert replies[0].observation.observation.game_loop >= ahead
    assert replies[2].error


def test_game_loop_is_ignored_when_not_in_real_time(offline):
    offline.start()
    request = sc_pb.RequestObservation(game_loop=500)
    assert offline.ask(observation=request).observation.observation.game_loop == 0


def _greedy(units, command) -> list[sc_pb.Action]:
    """Send everybody to the nearest target that nobody before was sent to."""
    targets = [unit for unit in units if unit.owner == 16]
    orders = []
    for marine in (unit for unit in units if unit.owner == 1):
        squares = [
            (unit.pos.x - marine.pos.x) ** 2 + (unit.pos.y - marine.pos.y) ** 2 for unit in targets
        ]
        goal = targets[int(np.argmin(squares))]
        orders.append(command([marine], MOVE, (goal.pos.x, goal.pos.y)))
        if len(targets) > 1:
            targets.remove(goal)
    return orders


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("MoveToBeacon", 0.85 * 26, 1.2 * 28), ("CollectMineralShards", 0.85 * 133, 1.2 * 177)],
)
def test_a_scripted_player_scores_like_people(offline, command, name, low, high):
    offline.start(name, seed=4)
    scores = []
    for _ in range(4):
        while offline.state.status.name == "IN_GAME":
            orders = _greedy(offline.observe().raw_data.units, command)
            offline.act(*orders)
            offline.step(8)
        scores.append(offline.observe().score.score)
        offline.ask(restart_game=sc_pb.RequestRestartGame())
    assert low <= sum(scores) / len(scores) <= high


_BOT = """
import sys
from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Difficulty, Race, Result
from sc2.ids.unit_typeid import UnitTypeId
from sc2.main import run_game
from sc2.player import Bot, Computer

class Player(BotAI):
    async def on_step(self, iteration):
        self.score = self.state.score.score
        if self.enemy_units:
            for unit in self.units(UnitTypeId.MARINE):
                unit.attack(self.enemy_units.closest_to(unit))
            return
        goals = self.all_units.filter(lambda u: u.type_id.value in (317, 1680))
        for unit in self.units:
            unit.move(goals.closest_to(unit).position)

player = Player()
players = [Bot(Race.Terran, player)]
if len(sys.argv) > 2:
    players.append(Computer(Race.Zerg, Difficulty.Easy))
result = run_game(maps.get(sys.argv[1]), players, realtime=False, random_seed=3)
print("RESULT", result.name, player.score, player.state.game_loop)
"""


@pytest.mark.parametrize(
    ("arguments", "results", "least"),
    [
        (["MoveToBeacon"], {"Victory"}, 10),
        (["DefeatRoaches", "computer"], {"Victory", "Defeat"}, 1),
    ],
)
def test_python_sc2_plays_a_whole_episode(installation, arguments, results, least):
    done = subprocess.run(
        [sys.executable, "-c", _BOT, *arguments],
        env=os.environ | {"SC2PATH": str(installation), "SC2PF": "Linux"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    word, result, score, _loop = done.stdout.strip().splitlines()[-1].split()
    assert word == "RESULT"
    assert result in results
    assert int(score) >= least
