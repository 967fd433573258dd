"""The team player: the agents of a `TeamTask` on one game, each a row of its env.

    get_actions ─► task.act(actions) ─► one burst: commands, step, observation ─► put_rows

Rule: the rows share the game, the task object, the reward, the info and the episode's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sc2pool.errors import ObservationError
from sc2pool.tasks.commands import as_actions
from sc2pool.tasks.episode_rules import EpisodeRules, awaited
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.sc2_player import TaskPlayer
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.teams.team_task import TeamTask


class TeamPlayer(TaskPlayer):
    """Plays a `TeamTask`."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        assert issubclass(spec.task, TeamTask)
        self.rows = len(spec.task.agents)
        self.observation_space = spec.task.row_space()

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        task = self.spec.task()
        assert isinstance(task, TeamTask)
        # One object stands for all rows: what was set on any of them is set on it.
        for row in range(self.rows):
            self.new_task(task, episode, row)
        game = self.game
        task.lazy_observation = await self.start_episode(episode)
        task.game = game
        task.game_info = await game.game_info()
        await awaited(task.on_start())
        rules = EpisodeRules(task)
        observed = task.lazy_observation  # `on_start` may have stepped the game
        transition = await rules.transition(observed.game_loop, observed.score)
        pair.put_rows(await self._rows_of(task, transition))
        while not rules.over:
            actions = await pair.get_actions()
            commands = as_actions(await awaited(task.act(actions)))
            step = await game.step(commands, task.step_mul)
            task.last_action = actions
            self.set_delay(task)
            task.action_results = tuple(step.action_results)
            task.lazy_observation = observed = step.observed
            transition = await rules.transition(
                observed.game_loop, observed.score, game_ended=step.ended
            )
            pair.put_rows(await self._rows_of(task, transition))

    async def _rows_of(self, task: TeamTask, transition: Transition) -> list[Transition]:
        """The team's transition as one for each agent.

        Raises:
            ObservationError: there is not an observation, or a mask, for each agent.
        """
        observations = self._one_each("observe", transition.observation)
        if task.shares_state:
            state = await awaited(task.state())
            observations = [{"observation": own, "state": state} for own in observations]
        masks: Sequence[Any] = [None] * self.rows
        if transition.action_masks is not None:
            masks = self._one_each("action_masks", transition.action_masks)
        return [
            transition._replace(observation=observation, action_masks=mask)
            for observation, mask in zip(observations, masks, strict=True)
        ]

    def _one_each(self, hook: str, returned: Any) -> Sequence[Any]:
        if not isinstance(returned, Sequence | np.ndarray) or len(returned) != self.rows:
            got = f"{len(returned)}" if hasattr(returned, "__len__") else repr(returned)
            raise ObservationError(
                f"{hook}() of a team must return one for each of its {self.rows} agents, got {got}"
            )
        return list(returned)
