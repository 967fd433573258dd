"""The player of an `RLBotAI`: python-sc2's game loop, on a game of the pool.

It does what `sc2.main._play_game_ai` does, in the same order, with three differences: actions,
step and observation are sent as one burst instead of four round trips; the map's description is
fetched once per game, not every step; the bot sees the episode's final state. Rules: `sc2.main` and
`SC2Process` are never imported, because they change the process's signals and logging; a message
that python-sc2 cannot read is a fault of the game, not a user code error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loguru import logger
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.action import combine_actions
from sc2.client import Client
from sc2.data import ActionResult, Result
from sc2.game_data import GameData
from sc2.game_info import GameInfo
from sc2.game_state import GameState
from sc2.protocol import ProtocolError
from sc2.unit_command import UnitCommand

from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.sc2_player import SC2Player
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair

# python-sc2 logs each order that the player cannot afford, for each of a pool's n games.
logger.disable("sc2")


class GameClient(Client):
    """python-sc2's client on a game of the pool: queries are sent at once, orders with the step."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)  # type: ignore[arg-type]  # only `_execute` would use it
        self._game = game
        self._player_id = game.player_id
        self._orders: list[sc_pb.Action] = []

    async def _execute(self, **request: Any) -> sc_pb.Response:  # type: ignore[override]
        response = await self._game.request(sc_pb.Request(**request))
        if response.error:
            raise ProtocolError(str(response.error))
        return response

    @property
    def in_game(self) -> bool:
        return self._game.result is None

    async def actions(
        self,
        actions: list[UnitCommand],
        return_successes: bool = False,  # noqa: ARG002 - python-sc2's signature
    ) -> list[ActionResult]:
        """Keep the orders for the step's burst; they have no results yet."""
        commands = actions if isinstance(actions, list) else [actions]
        self._orders += [sc_pb.Action(action_raw=raw) for raw in combine_actions(commands)]
        return []

    def take_orders(self) -> list[sc_pb.Action]:
        """The orders given since the last call."""
        orders, self._orders = self._orders, []
        return orders

    async def leave(self) -> None:
        """Does nothing: the pool ends games, not the bot."""


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Report as the game's fault that python-sc2 cannot read a message. No user code in the block.

    Raises:
        GameFault: BAD_REPLY; a field is missing, a grid has another size than its map, or a unit
            has an unknown type.
    """
    try:
        yield
    except Exception as error:
        detail = f"python-sc2 cannot read {what}: {type(error).__name__}: {error}"
        raise GameFault(FaultKind.BAD_REPLY, detail) from error


def prepare_step(bot: RLBotAI, state: GameState) -> None:
    """`BotAI._prepare_step` without the work that few bots need in every step.

    The distances between all units are computed on first use, and the map is the one that the game
    described at the episode's start.
    """
    method, grid = bot.distance_calculation_method, bot.game_info.pathing_grid
    if method in _LAZY_METHODS:
        bot.distance_calculation_method = 0  # only while the units are prepared
    try:
        bot._prepare_step(state, _NO_MAP)
    finally:
        bot.distance_calculation_method = method
        bot.game_info.pathing_grid = grid


_LAZY_METHODS = frozenset({2, 3})
"""python-sc2's two methods that compute a full distance matrix."""
_NO_MAP = sc_pb.Response(game_info=sc_pb.ResponseGameInfo())


class BotPlayer(SC2Player):
    """Plays an `RLBotAI`."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        self._game_data: GameData | None = None

    def latest_view(self) -> tuple[sc_pb.Observation, sc_pb.ResponseGameInfo] | None:
        bot = self.task
        if not isinstance(bot, RLBotAI) or not hasattr(bot, "state"):
            return None  # the episode is only being begun
        return bot.state.observation, bot.game_info._proto

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        game = self.game
        first = (await self.start_episode(episode)).response
        if self._game_data is None:
            data = await game.data()
            with understood("the game's data"):
                self._game_data = GameData(data)
        info = await game.request(sc_pb.Request(game_info=sc_pb.RequestGameInfo()))
        bot_class = self.spec.task
        assert issubclass(bot_class, RLBotAI)
        bot = bot_class(pair)
        self.new_task(bot, episode)
        client = GameClient(game)
        with understood("the map's description"):
            bot._prepare_start(
                client,
                game.player_id,
                GameInfo(info.game_info),
                self._game_data,
                realtime=self.setup.realtime,
                base_build=game.base_build,
            )
        with understood("the first observation"):
            bot._prepare_step(GameState(first), info)
        await bot.on_before_start()
        with understood("the first observation"):
            bot._prepare_first_step()
        await bot.on_start()
        iteration = 0
        while not bot.episode_over:
            await bot.issue_events()
            await bot.on_step(iteration)
            if bot.episode_over:
                break
            await bot._after_step()
            step = await game.step(client.take_orders(), bot.step_mul)
            self.set_delay(bot)
            seen = step.observed.response
            with understood("the observation"):
                prepare_step(bot, GameState(seen))
            iteration += 1
            if step.ended:
                await bot.issue_events()
                await bot.on_end(Result(game.result or Result.Undecided.value))
