"""python-sc2's client on a game of the pool; `docs/python-sc2.md` describes each method.

Rules: the orders of a bot's turn are sent with the step, all other requests immediately. The pool
begins and ends games, so `leave` surrenders, and joining, restarting or quitting is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loguru import logger
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.action import combine_actions
from sc2.client import Client
from sc2.data import ActionResult
from sc2.protocol import ProtocolError
from sc2.unit_command import UnitCommand

from sc2pool.game.game import Game

# python-sc2 logs each order that the player cannot afford, for each of a pool's n games.
logger.disable("sc2")


class GameClient(Client):
    """The client of a bot.

    Attributes:
        has_left: True once the bot has surrendered by `leave`, as under `run_game`.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)  # type: ignore[arg-type]  # only `_execute` would use it
        self.has_left = False
        self._game = game
        self._player_id = game.player_id
        self._orders: list[sc_pb.Action] = []
        self._collects = False

    async def _execute(self, **request: Any) -> sc_pb.Response:  # type: ignore[override]
        response = await self._game.request(sc_pb.Request(**request))
        if response.error:
            raise ProtocolError(str(response.error))
        return response

    @property
    def in_game(self) -> bool:
        return self._game.result is None and not self.has_left

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the orders that are given in the block for the step's burst."""
        self._collects = True
        try:
            yield
        finally:
            self._collects = False

    async def actions(
        self, actions: list[UnitCommand], return_successes: bool = False
    ) -> list[ActionResult]:
        """Like python-sc2's method, but orders that are kept for the step have no results yet."""
        if not self._collects:
            return await super().actions(actions, return_successes)
        commands = actions if isinstance(actions, list) else [actions]
        self._orders += [sc_pb.Action(action_raw=raw) for raw in combine_actions(commands)]
        return []

    def take_orders(self) -> list[sc_pb.Action]:
        """Return the orders that were given since the last call."""
        orders, self._orders = self._orders, []
        return orders

    async def leave(self) -> None:
        """Surrender, unless the game is over. The next step ends the game and the episode."""
        if not self.in_game:
            return
        self.has_left = True
        surrender = debug_pb2.DebugEndGame(end_result=debug_pb2.DebugEndGame.Surrender)
        order = debug_pb2.DebugCommand(end_game=surrender)
        await self._execute(debug=sc_pb.RequestDebug(debug=[order]))
