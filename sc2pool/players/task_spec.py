"""Describes how a task is played on games of one installation.

Rule: an impossible value raises an error here, before any process starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sc2pool.config import Computer, GameSetup, Limits, ReplayPolicy
from sc2pool.game.program.builds import NOTHING_SETTLED, Settled
from sc2pool.game.program.installation import Installation
from sc2pool.optional import require
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.tasks.opponents.resolve import Opponent
from sc2pool.tasks.task import TaskDefinition, agents_of, check_loops


@dataclass(frozen=True)
class TaskSpec:
    """A task, its installation and map, and the pool's options for it.

    Raises ConfigError if a number of loops or steps is not a whole number of at least 1. Raises
    MissingPackageError if frames need Pillow and Pillow is not installed.
    """

    task: type[TaskDefinition]
    installation: Installation
    map_path: Path
    limits: Limits
    render_mode: str | None = None
    replays: ReplayPolicy | None = None
    realtime: bool = False
    """True if the game runs by itself and does not wait for actions."""
    step_mul: int | None = None
    """Game loops per env step; None for the task's own number."""
    max_loops: int | None = None
    """The time limit of an episode in game loops; None for the task's own limit."""
    max_episode_steps: int | None = None
    """The limit of an episode in env steps; None for no limit."""
    opponent: Opponent | Computer | None = None
    """Who plays the other side of a task of two players; None if a learner plays it."""
    settled: Settled = NOTHING_SETTLED
    """The findings of `sc2pool doctor` about the installation."""

    def __post_init__(self) -> None:
        for name, number in self.overrides.items():
            check_loops(name, number)
        if self.render_mode == "rgb_array" and self.task.render is TaskDefinition.render:
            require("render_mode='rgb_array'", "PIL")

    @property
    def setup(self) -> GameSetup:
        """The players and options of the game."""
        setup = replace(self.task.game_setup(), realtime=self.realtime)
        if isinstance(self.opponent, Computer):
            setup = replace(setup, participants=1, opponents=(self.opponent,))
        return setup

    @property
    def overrides(self) -> dict[str, int]:
        """The attributes that this pool sets on each task object, before those of `set_attr`."""
        names = ("step_mul", "max_loops", "max_episode_steps")
        limits = {name: getattr(self, name) for name in names}
        return {name: number for name, number in limits.items() if number is not None}

    @property
    def loops_per_step(self) -> int:
        """Game loops per env step, unless `set_attr` changes `step_mul`."""
        return int(self.task.step_mul if self.step_mul is None else self.step_mul)

    @property
    def metadata(self) -> dict[str, Any]:
        """The task's metadata. `render_fps` is by default the speed of real time."""
        return {"render_fps": LOOPS_PER_S / self.loops_per_step, **self.task.metadata}

    @property
    def rows(self) -> int:
        """The number of an env's rows: one for each of its learning players or agents."""
        learners = self.task.players if self.opponent is None else 1
        return learners * agents_of(self.task)
