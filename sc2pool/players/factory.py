"""The pickled form of a task: a worker makes its player from it."""

from __future__ import annotations

from dataclasses import dataclass

from sc2pool.config import Computer
from sc2pool.players.task_spec import TaskSpec
from sc2pool.tasks.player import Player
from sc2pool.tasks.task import Task


@dataclass(frozen=True)
class TaskPlayerSpec:
    """A `PlayerSpec` that makes the player for a kind of task."""

    task: TaskSpec

    def player(self) -> Player:
        # Imported here: only the worker needs a player, and only bots need python-sc2, which costs
        # each worker 0.4 s and 80 MB.
        spec, task = self.task, self.task.task
        if task.players > 1 and not isinstance(spec.opponent, Computer):
            from sc2pool.players.match_player import MatchPlayer  # noqa: PLC0415

            return MatchPlayer(spec)
        if issubclass(task, Task):
            from sc2pool.players.sc2_player import TaskPlayer  # noqa: PLC0415

            return TaskPlayer(spec)
        from sc2pool.players.bots import BotPlayer  # noqa: PLC0415

        return BotPlayer(spec)
