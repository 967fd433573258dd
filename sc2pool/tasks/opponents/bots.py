"""python-sc2's ordinary bots as opponents: a bot plays its side of the match by itself.

    MyBot                                 a bot's class: a new object for each episode
    MyBot(arguments)                      an object: a copy of it for each episode
    Bot(Race.Zerg, MyBot(), name="…")     python-sc2's player, with its own race and name

Rules: python-sc2 is not imported here, because a program that has a bot has imported it already. A
bot gets neither the task's observations nor its actions: it sees and commands its own game.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sc2pool.config import race_number
from sc2pool.errors import ConfigError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.player import Episode

if TYPE_CHECKING:
    from sc2.bot_ai import BotAI


@dataclass(frozen=True)
class PlainBot:
    """A bot that plays one episode.

    Attributes:
        bot: a new bot.
        race: the bot's race, a `common_pb2.Race` value. None for the task's race.
    """

    bot: BotAI
    race: int | None = None


@dataclass(frozen=True)
class BotOpponent:
    """Plays every episode with a python-sc2 bot.

    Attributes:
        name: the opponent's name.
        bot: the bot's class, or an object of it. Only copies of the object play.
        race: as in `PlainBot`.
    """

    name: str
    bot: type[BotAI] | BotAI
    race: int | None = None

    def begin(self, episode: Episode) -> tuple[str, PlainBot]:  # noqa: ARG002
        bot = self.bot() if isinstance(self.bot, type) else copy.deepcopy(self.bot)
        return self.name, PlainBot(bot, self.race)


def bot_opponent(opponent: Any) -> BotOpponent | None:
    """The opponent for a bot of python-sc2; None if `opponent` is not such a bot.

    Raises:
        ConfigError: the bot is an `RLBotAI`, which has no policy of its own, or python-sc2's player
            has no bot.
    """
    bots, players = (sys.modules.get(f"sc2.{name}") for name in ("bot_ai", "player"))
    if bots is None:
        return None
    bot, race, name = opponent, None, None
    if players is not None and isinstance(opponent, players.Bot):
        bot, race, name = opponent.ai, race_number(opponent.race), opponent.name
        if bot is None:
            raise ConfigError(f"opponent={opponent!r} has no bot: its ai is None")
    bot_class = bot if isinstance(bot, type) else type(bot)
    if not issubclass(bot_class, bots.BotAI):
        return None
    if issubclass(bot_class, TaskDefinition):
        raise ConfigError(
            f"opponent must act by itself, but {bot_class.__name__} is an RLBotAI: give the policy "
            f"that plays it"
        )
    return BotOpponent(name or bot_class.__name__, bot, race)
