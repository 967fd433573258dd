"""The team player: the agents of a `TeamTask` on one game, each a row of its env.

    get_actions ─► task.act(actions) ─► one burst: commands, step, observation ─► put_rows

Rule: the rows share the game, the task object, the reward, the info and the episode's end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sc2pool.tasks.players.rows import rows_of
from sc2pool.tasks.players.sc2_player import TaskPlayer
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task


class TeamPlayer(TaskPlayer):
    """Plays a `TeamTask`."""

    def taking(self, pair: QueuePair) -> Callable[[], Awaitable[Any]]:
        return pair.get_actions

    async def put(self, pair: QueuePair, task: Task, transition: Transition) -> None:
        pair.put_rows(await rows_of(task, transition, with_state=True))
