"""python-sc2's bots as opponents: what is taken for one, and that each episode has its own."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2
from sc2.bot_ai import BotAI
from sc2.data import Race
from sc2.player import Bot

from sc2pool.errors import ConfigError
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.opponents.bots import PlainBot
from sc2pool.tasks.opponents.resolve import resolve
from sc2pool.tasks.player import Episode
from tests.unit.conftest import printed_by


class Waiting(BotAI):
    plan = "wait"

    async def on_step(self, iteration: int) -> None:
        """It waits."""


class Bare(Waiting):
    def __init__(self) -> None:
        """It does not call its base, as many bots do not."""


class Learning(RLBotAI):
    map_name = "MarineDuel"
    players = 2
    observation_space = action_space = spaces.Discrete(2)

    def observe(self):
        raise NotImplementedError

    def act(self, action):
        raise NotImplementedError


def begun(given, duel) -> list[tuple[str, PlainBot]]:
    """Who plays two episodes, after the way to a worker."""
    opponent = cloudpickle.loads(cloudpickle.dumps(resolve(given, duel)))
    return [opponent.begin(Episode(number)) for number in range(2)]


@pytest.mark.parametrize("given", [Waiting, Waiting(), Bare, Bare(), Bot(Race.Zerg, Waiting())])
def test_each_episode_has_a_bot_of_its_own(given, duel):
    (name, first), (_, second) = begun(given, duel)
    assert name == type(first.bot).__name__
    assert type(first.bot).__name__ in ("Waiting", "Bare")
    assert first.bot is not second.bot
    assert first.race == (common_pb2.Zerg if isinstance(given, Bot) else None)
    first.bot.plan = "attack"
    assert second.bot.plan == "wait"


def test_bot_object_keeps_its_attributes(duel):
    given = Waiting()
    given.plan = "expand"
    for _, playing in begun(Bot(Race.Random, given, name="planner"), duel):
        assert (playing.bot.plan, playing.race) == ("expand", common_pb2.Random)
    assert begun(Bot(Race.Random, given, name="planner"), duel)[0][0] == "planner"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Learning, "Learning is an RLBotAI: give the policy"),
        (Learning(policy=lambda _: 0), "Learning is an RLBotAI: give the policy"),
        (Bot(Race.Terran, Learning(policy=lambda _: 0)), "Learning is an RLBotAI"),
        (Bot(Race.Terran, None), "has no bot: its ai is None"),
        (np.zeros, None),
    ],
)
def test_other_objects_are_refused(given, told, duel):
    if told is None:
        assert resolve(given, duel).name == "zeros"
        return
    with pytest.raises(ConfigError, match=told):
        resolve(given, duel)


def test_a_program_without_bots_does_not_load_python_sc2():
    printed_by(
        "import sys\n"
        "from sc2pool.tasks.duels.marine_duel import MarineDuel\n"
        "from sc2pool.tasks.opponents.resolve import resolve\n"
        "resolve(MarineDuel.scripted, MarineDuel)\n"
        "assert 'sc2' not in sys.modules"
    )
