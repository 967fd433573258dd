"""The recipe's bot: puts observations on one queue, gets actions from the other."""

from __future__ import annotations

from multiprocessing.queues import Queue
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Result

from sc2pool.commands import as_actions
from sc2pool.tasks.task import Task


class RecipeBot(BotAI):
    """Plays one episode of a task under python-sc2's own loop.

    Args:
        task: computes observations and commands.
        actions: the queue of actions of the task's action space; None makes the bot leave the game.
        transitions: the queue for tuples of observation, reward, terminated and truncated.
    """

    def __init__(self, task: type[Task], actions: Queue[Any], transitions: Queue[Any]) -> None:
        super().__init__()
        self._task = task()
        self._actions = actions
        self._transitions = transitions
        self._score: float | None = None
        self._over = False

    async def on_start(self) -> None:
        self.client.game_step = self._task.step_mul
        self._task.game_info = self.game_info._proto
        self._task.observation = self.state.response_observation.observation
        self._task.on_start()

    async def on_step(self, iteration: int) -> None:  # noqa: ARG002
        most = self._task.max_loops
        self._over = most is not None and self.state.game_loop >= most
        self._put(terminated=False, truncated=self._over)
        action = None if self._over else self._actions.get()
        if action is None:
            self._over = True
            await self.client.leave()
            return
        commands = as_actions(self._task.act(action))
        if commands:
            await self.client._execute(action=sc_pb.RequestAction(actions=commands))

    async def on_end(self, game_result: Result) -> None:  # noqa: ARG002
        if not self._over:
            self._put(terminated=True, truncated=False)

    def _put(self, *, terminated: bool, truncated: bool) -> None:
        task = self._task
        task.observation = self.state.response_observation.observation
        score = float(task.observation.score.score)
        reward = 0.0 if self._score is None else score - self._score
        self._score = score
        self._transitions.put((task.observe(), reward, terminated, truncated))
