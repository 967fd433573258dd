"""The pickled form of a task: a worker makes its player from it."""

from __future__ import annotations

from dataclasses import dataclass

from sc2pool.players.task_spec import TaskSpec
from sc2pool.tasks.player import Player


@dataclass(frozen=True)
class TaskPlayerSpec:
    """A `PlayerSpec` that makes the player of a task."""

    task: TaskSpec

    def player(self) -> Player:
        # Imported here, because only the worker needs a player.
        from sc2pool.players.sc2_player import SC2Player  # noqa: PLC0415

        return SC2Player(self.task)
