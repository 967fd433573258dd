"""Drives a `Task` through one episode. Its game is stepped by the pool, a match, or python-sc2.

begin ─► transition ─► turn ─► see ─► turn ─► see …
                       commands  the transition of the step's observation
"""

from __future__ import annotations

from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import as_actions
from sc2pool.game.clock import Tick
from sc2pool.game.game import Step
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.episode_rules import PLAIN, EpisodeRules, awaited
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.task import Task


class DrivenTask:
    """Calls the hooks of one task object.

    Attributes:
        rules: the rules of the episode. They also record whether it is over.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self.rules = EpisodeRules(task)

    async def begin(self, game: Any, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        """Give the task its game, the map and the first observation, and call `on_start`.

        Args:
            game: the task's `game`. It has a method `request` and an attribute `result`.
        """
        task = self._task
        task.lazy_observation = observed
        task.game = game
        task.game_info = game_info
        await awaited(task.on_start())

    async def transition(
        self, observed: Observed | None = None, *, game_ended: bool = False
    ) -> Transition:
        """The transition of an observation.

        Args:
            observed: the observation. None for the task's newest one: `on_start` may have stepped
                the game.
            game_ended: whether the game has ended with this observation.
        """
        if observed is None:
            observed = self._task.lazy_observation
        self._task.lazy_observation = observed
        return await self.rules.transition(
            observed.game_loop, observed.score, game_ended=game_ended
        )

    async def turn(self, action: Any) -> list[sc_pb.Action]:
        """The commands into which the task turns this action."""
        task = self._task
        acts = task.act(action)
        commands = as_actions(acts if type(acts) in PLAIN else await awaited(acts))
        task.last_action = action
        return commands

    async def see(self, step: Step, tick: Tick | None) -> Transition:
        """The transition of the observation after a step.

        Args:
            step: the result of the step.
            tick: in real time, how late the step was; else None.
        """
        task, observed = self._task, step.observed
        note_delay(task, tick)
        task.action_results = tuple(step.action_results)
        task.lazy_observation = observed
        return await self.rules.transition(
            observed.game_loop, observed.score, game_ended=step.ended
        )


def note_delay(task: TaskDefinition, tick: Tick | None) -> None:
    """In real time, set the task's `delay_s` to the delay of the newest step."""
    if tick is not None:
        task.delay_s = tick.gap_s
