"""The team player: the agents of a `TeamTask` on one game, each a row of its env.

    get_actions ─► task.act(actions) ─► one burst: commands, step, observation ─► put_rows

Rule: the rows share the game, the task object, the reward, the info and the episode's end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sc2pool.tasks.players.rows import rows_of
from sc2pool.tasks.players.sc2_player import TaskPlayer
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task
from sc2pool.tasks.teams.team_task import TeamTask


class TeamPlayer(TaskPlayer):
    """Plays a `TeamTask`."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        assert issubclass(spec.task, TeamTask)
        self.rows = len(spec.task.agents)
        self.observation_space = spec.task.row_space()

    def taking(self, pair: QueuePair) -> Callable[[], Awaitable[Any]]:
        return pair.get_actions

    async def put(self, pair: QueuePair, task: Task, transition: Transition) -> None:
        pair.put_rows(await rows_of(task, transition, with_state=True))
