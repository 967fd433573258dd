"""`TeamTask`: a task whose agents act together in one game.

    class Pair(TeamTask):
        map_name = "MyMap"
        agents = ("marine_0", "marine_1")
        observation_space = spaces.Box(-1, 1, (9,), np.float32)    # of one agent
        action_space = spaces.Discrete(5)                          # of one agent

        def act(self, actions):     # one action per agent -> commands
            return [...]

        def observe(self):          # one observation per agent, as an array or a list
            return np.array([...])

Rules: actions, observations and masks are in the order of `agents`. The agents share the reward,
the info and the end of the episode. An agent whose unit is dead continues acting, without effect,
until the episode ends. With `players = 2` each side of a match is a team with its own task object.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar

from gymnasium import spaces

from sc2pool.commands import Commands
from sc2pool.errors import ConfigError
from sc2pool.tasks.task import Task, TaskDefinition


class TeamTask(Task):
    """One episode of a team's task.

    Attributes:
        agents: the agents' names, all different. An env has a row for each agent. In a match of two
            learning teams, the first player's rows come before the second's.
        observation_space: the observation space of one agent.
        action_space: the action space of one agent.
        state_space: the space of `state()`. None if the task has no state.
        shares_state: whether each row's observation also contains the state, for a critic that sees
            the whole battle. The observation is then a dict of "observation" and "state".
        last_action: the actions before the newest observation, one for each agent. None before the
            episode's first action.

    `action_masks()`, if the task has it, returns one mask per agent, as an array or a list.
    """

    agents: ClassVar[tuple[str, ...]] = ()
    state_space: ClassVar[spaces.Space[Any] | None] = None
    shares_state: ClassVar[bool] = False

    @abstractmethod
    def act(self, action: Sequence[Any]) -> Commands | Awaitable[Commands | None] | None:
        """Turn one action per agent into unit commands."""

    @abstractmethod
    def observe(self) -> Any:
        """Return one observation per agent, each an element of the observation space.

        May be `async`.
        """

    def state(self) -> Any:
        """Return the whole battle of the newest observation, an element of the state space."""
        raise NotImplementedError(f"{type(self).__name__} has no state")

    @classmethod
    def check_values(cls) -> None:
        """Also check that the agents' names differ, and that a shared state has a space."""
        super().check_values()
        agents: object = cls.agents
        if (
            not isinstance(agents, tuple)
            or not agents
            or not all(isinstance(name, str) and name for name in agents)
            or len(set(agents)) < len(agents)
        ):
            raise ConfigError(
                f"agents must be a tuple of at least one name, all different, got {agents!r}"
            )
        if not isinstance(cls.state_space, spaces.Space | None):
            raise ConfigError(f"state_space must be a Space or None, got {cls.state_space!r}")
        if cls.shares_state and cls.state_space is None:
            raise ConfigError("shares_state is True, but the task has no state_space")


def agents_of(task: type[TaskDefinition]) -> int:
    """The number of agents of each learning player of a task."""
    return len(task.agents) if issubclass(task, TeamTask) else 1


def row_space(task: type[TaskDefinition]) -> spaces.Space[Any]:
    """The observation space of a row of a task's env."""
    if not issubclass(task, TeamTask) or not task.shares_state:
        return task.observation_space
    assert task.state_space is not None, "checked with the definition"
    return spaces.Dict({"observation": task.observation_space, "state": task.state_space})
