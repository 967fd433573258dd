"""The rows of a task's env: one for each agent of a team task, else a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sc2pool.errors import ObservationError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.episode_rules import awaited
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.teams.team_task import TeamTask


async def rows_of(
    task: TaskDefinition, transition: Transition, *, with_state: bool
) -> list[Transition]:
    """Split a task's transition into one for each agent.

    Args:
        task: the task.
        transition: the task's transition.
        with_state: whether each observation contains the state, if the task shares it.

    Raises:
        ObservationError: the number of observations or masks is not the number of agents.
    """
    if not isinstance(task, TeamTask):
        return [transition]
    n = len(task.agents)
    observations = _one_each("observe", transition.observation, n)
    if task.shares_state and with_state:
        state = await awaited(task.state())
        observations = [{"observation": own, "state": state} for own in observations]
    masks: Sequence[Any] = [None] * n
    if transition.action_masks is not None:
        masks = _one_each("action_masks", transition.action_masks, n)
    return [
        transition._replace(observation=observation, action_masks=mask)
        for observation, mask in zip(observations, masks, strict=True)
    ]


def as_taken(task: TaskDefinition, actions: Sequence[Any]) -> Any:
    """The argument of the task's `act`: all actions for a team task, else the single one."""
    if isinstance(task, TeamTask):
        return actions
    (action,) = actions
    return action


def _one_each(hook: str, returned: Any, n: int) -> Sequence[Any]:
    is_list = isinstance(returned, Sequence) or (isinstance(returned, np.ndarray) and returned.ndim)
    if not is_list or len(returned) != n:
        got = len(returned) if is_list else f"{returned!r:.80}"
        raise ObservationError(
            f"{hook}() of a team must return one for each of its {n} agents, got {got}"
        )
    return list(returned)
