"""`PolicyBot`: under python-sc2's own `run_game`, a policy plays the same as in the pool."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest
from sc2.bot_ai import BotAI

from sc2pool import PolicyBot
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.scripted import SCRIPTED
from sc2pool.tasks.opponents.policies import PredictPair
from sc2pool.tasks.registry import resolve_task

SEED = 5


class MaskedBeacon(resolve_task("MoveToBeacon")):
    """MoveToBeacon with 30 steps, changing masks, and a request to the game in each step."""

    max_loops = 240

    def action_masks(self):
        return np.arange(8) != self.lazy_observation.game_loop // 8 % 8

    async def act(self, action):
        from s2clientprotocol import sc2api_pb2 as sc_pb

        pong = await self.game.request(sc_pb.Request(ping=sc_pb.RequestPing()))
        assert pong.ping.game_version == self.game_version
        return super().act(action)


class WithoutBotAI(BotAI):
    """A bot whose `__init__` does not call the base class; `run_game` does not need that call."""

    def __init__(self):
        self.distance_calculation_method = 0


class MaskedBeaconBot(resolve_task("MoveToBeaconBot"), WithoutBotAI):
    """A bot that does the same as `MaskedBeacon`, but sends no requests."""

    max_loops = 240

    def action_masks(self):
        return np.arange(8) != self.state.game_loop // 8 % 8


class Walker:
    """Walks to the beacon, or a little to the left if the mask forbids the beacon's direction."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.starts: list[bool] = []

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        action = SCRIPTED["MoveToBeacon"](observation)
        if not action_masks[action]:
            action = (action + 1) % 8
        self.taken.append(action)
        self.starts.append(bool(episode_start[0]))
        return np.array(action), (state or 0) + 1


# python-sc2's `run_game` takes over signals and logging, so a separate process runs it.
RUN_GAMES = """
import importlib.util, json, sys

path, name, seed = sys.argv[1:]
spec = importlib.util.spec_from_file_location("the_test", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

from sc2 import maps
from sc2.data import Race
from sc2.main import run_game
from sc2.player import Bot

from sc2pool import PolicyBot

walker = module.Walker()
bot = PolicyBot(getattr(module, name), walker)
told = []
for _ in range(2):
    walker.taken.clear()
    walker.starts.clear()
    run_game(
        maps.get("MoveToBeacon"), [Bot(Race.Terran, bot)], realtime=False, random_seed=int(seed)
    )
    told.append([walker.taken[:], bot.steps, bot.episode_return, sum(walker.starts)])
print("TOLD", json.dumps(told))
"""


@pytest.mark.standin("its episodes repeat under a seed whatever is asked in between")
@pytest.mark.parametrize("task", [MaskedBeacon, MaskedBeaconBot])
def test_two_games_are_played_as_in_the_pool(standin_dir, task):
    # Imported here, because RUN_GAMES must not find these names.
    from tests.matches.playing import play_through, player_of
    from tests.support.programs import run

    walker = Walker()
    pair = PredictPair(walker, task.action_space, deterministic=False)
    with player_of(standin_dir, task) as player:
        play_through(player, [pair], seeds=[SEED])
    environment = {**os.environ, "SC2PATH": str(standin_dir)}
    ran = run(sys.executable, "-c", RUN_GAMES, __file__, task.__name__, SEED, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.rpartition("TOLD")[2])
    assert pair.episode_return > 0
    assert told == [[walker.taken, 30, pair.episode_return, 1]] * 2


def test_a_policy_for_another_task_is_refused():
    class Model:
        action_space = resolve_task("DefeatRoaches").action_space

        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return 0, None

    with pytest.raises(ConfigError, match=r"acts in Discrete\(11\), the task MoveToBeacon in"):
        PolicyBot("MoveToBeacon", Model())
