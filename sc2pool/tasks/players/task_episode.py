"""One episode of a `Task` on a game that python-sc2 runs.

`TaskPlayer` plays a task on a game of the pool and steps it; here python-sc2's loop steps, and
calls this class. Rule: the task notices no difference: its hooks are called in the same order, at
the same game loops, and `await self.game.request(…)` works.
"""

from __future__ import annotations

import time
from contextlib import suppress

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.client import Client
from sc2.game_state import GameState
from sc2.protocol import ConnectionAlreadyClosedError, ProtocolError

from sc2pool.protocol.observed import Observed
from sc2pool.tasks.players.driven_task import DrivenTask
from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.task import Task


class TaskEpisode:
    """Drives one task object."""

    def __init__(
        self,
        task: Task,
        pair: QueuePair,
        client: Client,
        game_info: sc_pb.ResponseGameInfo,
        *,
        realtime: bool,
    ) -> None:
        self._task = task
        self._pair = pair
        self._client = client
        self._realtime = realtime
        self._game_info = game_info
        self._driven = DrivenTask(task)

    async def start(self, state: GameState) -> None:
        """Take the first observation and call the task's `on_start`."""
        observed = Observed.of(state.response_observation)
        game = ClientGame(self._client, realtime=self._realtime)
        await self._driven.begin(game, observed, self._game_info)

    async def step(self, state: GameState) -> None:
        """Put the transition that led here; then act, or leave if the episode is over."""
        self._client.game_step = self._task.step_mul  # for python-sc2's own loop
        observed_s = time.monotonic()
        await self._put(Observed.of(state.response_observation), game_ended=False)
        if self._driven.rules.over:
            await self._client.leave()
            return
        commands = await self._driven.turn(await self._pair.get_action())
        if self._realtime:
            self._task.delay_s = time.monotonic() - observed_s
        self._task.action_results = ()
        if commands:
            try:
                reply = await self._client._execute(action=sc_pb.RequestAction(actions=commands))
            except ProtocolError as error:
                if not error.is_game_over_error:  # in real time it may end at any moment
                    raise
            else:
                self._task.action_results = tuple(reply.action.result)

    async def end(self) -> None:
        """The game is over: put the last transition, seen from the game's final state."""
        if self._driven.rules.over or not self._driven.rules.begun:
            return
        observed = self._task.lazy_observation
        # python-sc2 ends the game without the last observation; request it here. Not by
        # `client.observation`, which expects the result again: the game reports it once.
        with suppress(ProtocolError, ConnectionAlreadyClosedError):
            response = await self._client._execute(observation=sc_pb.RequestObservation())
            observed = Observed.of(response.observation)
        await self._put(observed, game_ended=True)

    async def _put(self, observed: Observed, *, game_ended: bool) -> None:
        self._pair.put(await self._driven.transition(observed, game_ended=game_ended))


class ClientGame:
    """A task's `game` if the game belongs to python-sc2: it answers requests, and has a result."""

    def __init__(self, client: Client, *, realtime: bool) -> None:
        self._client = client
        self.realtime = realtime

    @property
    def result(self) -> int | None:
        """The own player's `Result`, once the game has ended with one."""
        results = self._client._game_result or {}
        result = results.get(self._client._player_id)
        return None if result is None else int(result.value)

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        """As `Game.request`: a refusal is a reply with `error` set."""
        kind = str(request.WhichOneof("request"))
        try:
            return await self._client._execute(**{kind: getattr(request, kind)})
        except ProtocolError as error:
            return sc_pb.Response(error=[str(error)])
