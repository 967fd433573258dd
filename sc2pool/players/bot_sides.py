"""The sides of a game that python-sc2's bots play: an `RLBotAI` with a learner, or any other bot.

Bots are called as in python-sc2's `run_game`. An `RLBotAI` without a second player uses the
learner's queue pair directly. In a match the bot requests its action in the middle of its turn,
when the other side's transition may not be known yet. So the turn is an asyncio task that awaits
the action:

    Turn: on_step ─ put ─ get_action ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ act ─► orders
                            └► transition ─► both rows ─► action ┘.

Rule: at most one turn runs at a time; the other turns wait for an action.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import UserCodeError
from sc2pool.game.game import Game, Step
from sc2pool.players.bots import DrivenBot, GameClient, SharedData, new_bot, no_transition
from sc2pool.players.match_episode import PlayedSide, TaskSide, blamed_on_opponent
from sc2pool.players.replays import LastHeld
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.opponents.policies import PlainBot
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import TaskDefinition


class TurnPair(QueuePair):
    """The queue pair of an `RLBotAI` in a match; `get_action` waits until `decide` is called."""

    def __init__(self) -> None:
        self.asked = _future()
        """A future that is done while the bot waits for an action."""
        self._action = _future()
        self._transition: Transition | None = None

    def put(self, transition: Transition) -> None:
        self._transition = transition

    async def get_action(self) -> Any:
        self._action = _future()
        self.asked.set_result(None)
        return await self._action

    def take(self) -> Transition | None:
        """Return the transition that was put since the last call, or None."""
        transition, self._transition = self._transition, None
        return transition

    def decide(self, action: Any) -> None:
        """Give the waiting bot its action."""
        self.asked = _future()
        self._action.set_result(action)


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class LoneBotSide(TaskSide):
    """An `RLBotAI` alone in its game; `end` gives the learner's pair the last transition."""

    task: RLBotAI

    def __init__(
        self, definition: type[TaskDefinition], game: Game, pair: QueuePair, shared: SharedData
    ) -> None:
        self.game = game
        self._pair = pair
        self._held = LastHeld(pair)
        self.task = new_bot(definition, self._held)
        self._shared = shared

    @property
    def loops(self) -> int:
        return self.task.step_mul

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        self._client = GameClient(self.game)
        self._driven = DrivenBot(self.task, self.game, self._client, self._shared)
        await self._driven.start(observed, game_info)
        self._note_last()

    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:  # noqa: ARG002
        orders = await self._driven.turn()
        if not self.task._rules.begun:
            raise no_transition(self.task, "on_step")
        self._note_last()
        return orders

    async def see(self, step: Step) -> None:
        if self.game.tick is not None:
            self.task.delay_s = self.game.tick.gap_s
        if self._client.has_left and not step.ended:  # the game ignored the surrender
            step = step._replace(ended=True)
            self.game.result = sc_pb.Defeat
        await self._driven.see(step)
        if step.ended:
            await self._driven.end(self.game.result)
            if not self.task.episode_over:
                raise no_transition(self.task, "on_end")
        self._note_last()

    async def end(self, last: Transition | None) -> None:
        await self._driven.cut()
        assert last is not None, "the bot has ended the episode"
        self._pair.put(last)

    def _note_last(self) -> None:
        if self.task.episode_over:
            (self.newest,) = self._held.last


class RLBotSide(TaskSide):
    """A side of an `RLBotAI` in a match."""

    task: RLBotAI

    def __init__(self, definition: type[TaskDefinition], game: Game, shared: SharedData) -> None:
        self.game = game
        self._pair = TurnPair()
        self.task = new_bot(definition, self._pair)
        self._shared = shared
        self._turn: asyncio.Task[list[sc_pb.Action]] | None = None

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        self._driven = DrivenBot(self.task, self.game, GameClient(self.game), self._shared)
        await self._driven.start(observed, game_info)
        self.newest = await self._to_its_action()

    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:
        (action,) = actions
        turn = self._turn
        assert turn is not None, "its turn has come as far as its action"
        self._pair.decide(action)
        await self._until_asked_or_over(turn)
        if not turn.done():
            raise UserCodeError(
                f"{type(self.task).__name__}.on_step() asked for two actions; in a match it gets "
                f"one in each step"
            )
        self._turn = None
        return turn.result()

    async def see(self, step: Step) -> None:
        if self.game.tick is not None:
            self.task.delay_s = self.game.tick.gap_s
        await self._driven.see(step)
        if not step.ended:
            self.newest = await self._to_its_action()
            return
        await self._driven.end(self.game.result)
        self.newest = self._put_by("on_end")

    async def end(self, last: Transition | None) -> None:  # noqa: ARG002
        await self.stop()  # if the other side has ended the episode, this turn still waits
        self.task._end_episode()
        await self._driven.cut()

    async def stop(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel()
            await asyncio.wait([turn])

    async def _to_its_action(self) -> Transition:
        """Let the bot take its turn until it waits for its action, or has ended the episode."""
        self._turn = turn = asyncio.ensure_future(self._driven.turn())
        await self._until_asked_or_over(turn)
        if turn.done():
            self._turn = None
            turn.result()  # raises the bot's exception, if any
            if not self.task.episode_over:
                raise UserCodeError(
                    f"{type(self.task).__name__}.on_step() asked for no action; in a match it must "
                    f"call super().on_step() in each step"
                )
        return self._put_by("on_step")

    def _put_by(self, hook: str) -> Transition:
        transition = self._pair.take()
        if transition is None:
            raise no_transition(self.task, hook)
        return transition

    async def _until_asked_or_over(self, turn: asyncio.Task[Any]) -> None:
        await asyncio.wait((turn, self._pair.asked), return_when=asyncio.FIRST_COMPLETED)


class PlainBotSide(PlayedSide):
    """A side that an ordinary bot plays by itself, with a turn every `client.game_step` loops."""

    def __init__(self, plain: PlainBot, name: str, game: Game, shared: SharedData) -> None:
        self.game = game
        self._bot = plain.bot
        self._name = name
        self._shared = shared

    @property
    def loops(self) -> int:
        loops = self._client.game_step
        if not isinstance(loops, Integral) or loops < 1:
            raise UserCodeError(
                f"client.game_step of the opponent {self._name!r} must be a whole number of at "
                f"least 1, got {loops!r}"
            )
        return loops

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        self._client = client = GameClient(self.game)
        self._driven = DrivenBot(self._bot, self.game, client, self._shared, fresh_map=True)
        with blamed_on_opponent(self._name, has_game=True):
            await self._driven.start(observed, game_info)

    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:  # noqa: ARG002
        with blamed_on_opponent(self._name, has_game=True):
            return await self._driven.turn()

    async def see(self, step: Step) -> None:
        with blamed_on_opponent(self._name, has_game=True):
            await self._driven.see(step)
            if step.ended:
                await self._driven.end(self.game.result)

    async def end(self, last: Transition | None) -> None:  # noqa: ARG002
        with blamed_on_opponent(self._name, has_game=True):
            await self._driven.cut()
