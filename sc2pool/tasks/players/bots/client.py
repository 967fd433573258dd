"""python-sc2's client on a game of the pool.

Rules: queries and debug requests are sent at once, orders with the step; the pool begins and ends
games, so a client joins none and leaves none.
"""

from __future__ import annotations

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
    """The client of an `RLBotAI`."""

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


class SurrenderingClient(GameClient):
    """The client of a bot that may give up, as one does by leaving under `run_game`."""

    async def leave(self) -> None:
        """Surrender; the game ends with the next step, and the pool goes on to the next one."""
        surrender = debug_pb2.DebugEndGame(end_result=debug_pb2.DebugEndGame.Surrender)
        order = debug_pb2.DebugCommand(end_game=surrender)
        await self._execute(debug=sc_pb.RequestDebug(debug=[order]))
