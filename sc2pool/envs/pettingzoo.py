"""`SC2ParallelEnv`: the agents of one team, or the players of one match, as a PettingZoo env.

    `SC2ParallelEnv("3m")`: The agents are marine_0, marine_1 and marine_2, in one game.
    `SC2ParallelEnv("MarineDuel")`: The agents are player_0 and player_1, each with its own game.
    `SC2ParallelEnv("3m_duel")`: The agents are two teams: player_0_marine_0, … player_1_marine_2.

The rules are those of PettingZoo's `ParallelEnv`, so there is no autoreset. All agents act in each
step, and all are done in the same step, because their game ends for all. The first reset, not the
constructor, launches the games, because SuperSuit and other libraries copy the env, and each copy
needs games of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Unpack

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import EzPickle
from pettingzoo import ParallelEnv

from sc2pool import PoolStats, TeamTask
from sc2pool.errors import ActionError, ConfigError
from sc2pool.integration import (
    GameKeywords,
    TaskChoice,
    TaskDefinition,
    check_keywords,
    make_players,
    resolve_task,
    whole_mask,
)
from sc2pool.pool.batch import Batch
from sc2pool.pool.pool import Pool
from sc2pool.utilities import Array, whole_number

Step = tuple[
    dict[str, Any],
    dict[str, float],
    dict[str, bool],
    dict[str, bool],
    dict[str, dict[str, Any]],
]


class SC2ParallelEnv(ParallelEnv[str, Any, Any], EzPickle):
    """One game of a team, or one match, as a PettingZoo env.

    Args:
        task: A built-in task's name, such as "3m", or a subclass of `TeamTask` or `Task`.

    The other keywords are those of `SubprocSC2VecEnv`, except n, num_envs, seed and spares.

    If the task has masks, an observation is a dict: "observation" is the task's observation, and
    "action_mask", int8, has a 1 for each action that is possible now. Without masks, the
    observation is the task's observation.

    Attributes: PettingZoo's own, `realtime`, `step_mul` (game loops per step), and `state_space` if
    the task has a state, which `state()` returns.

    Raises:
        ConfigError: a wrong keyword, unknown task or render mode, no installation, or a missing
            map.
    """

    def __init__(
        self,
        task: TaskChoice = "3m",
        **games: Unpack[GameKeywords],
    ) -> None:
        check_keywords(type(self).__name__, games, GameKeywords)
        EzPickle.__init__(self, task, **games)
        definition = with_shared_state(resolve_task(task))
        self._players = make_players(n=1, task=definition, **games)
        spec = self._players.task
        assert spec is not None, "it was given a task"
        self._pool: Pool | None = None
        self._has_masks = hasattr(definition, "action_masks")
        self._shares_state = False
        if issubclass(definition, TeamTask) and definition.shares_state:
            self._shares_state = True
            self.state_space = definition.state_space
        self._state: Array | None = None
        names = names_of(definition, alone=spec.opponent is not None)
        self.possible_agents = names
        self.agents: list[str] = []
        observation_space = definition.observation_space
        if self._has_masks:
            masks = mask_space(definition.action_space)
            both = {"observation": observation_space, "action_mask": masks}
            observation_space = spaces.Dict(both)
        # Each agent has its own copy of the spaces, because users seed them one by one.
        self.observation_spaces = {name: deepcopy(observation_space) for name in names}
        self.action_spaces = {name: deepcopy(definition.action_space) for name in names}
        self.render_mode = spec.render_mode
        self.realtime = self._players.realtime
        self.step_mul = self._players.step_mul
        self.metadata = {
            **spec.metadata,
            "name": f"sc2pool_{definition.__name__}_v0",
            "is_parallelizable": True,
        }

    def __repr__(self) -> str:
        if self._pool is None:
            return f"{type(self).__name__}(agents={self.possible_agents}, no game launched)"
        return self._players.describe(self, self._pool)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent; each call returns the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent; each call returns the same object."""
        return self.action_spaces[agent]

    @property
    def pool(self) -> Pool:
        """The pool itself.

        Raises:
            ResetNeeded: the first reset, which makes the pool, has not happened.
        """
        if self._pool is None:
            raise ResetNeeded("call reset() first: no game is launched")
        return self._pool

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: Equal seeds exactly repeat this episode and all later episodes of the env, as in
                `SC2GymEnv`.
            options: The options, which the task reads as `self.options`.

        Returns:
            The observation and the info of each agent.

        Raises:
            ConfigError: seed is not a whole number of at least 0, or a game cannot be started.
            CrashLoopError, UserCodeError, ObservationError: see their docstrings; every later call
                raises `ClosedError`.
        """
        if seed is not None:
            seed = whole_number("seed", seed, 0)
        if self._pool is None:
            self._pool = self._players.make_pool(autoreset=False)
        pool = self._pool
        if seed is not None:
            pool.seed(seed)
        batch = pool.reset(options=[options or {}])
        self.agents = list(self.possible_agents)
        infos = [info or {} for info in batch.reset_infos]
        return self._observations(batch), dict(zip(self.possible_agents, infos, strict=True))

    def step(self, actions: Mapping[str, Any]) -> Step:
        """Play one step, which is `step_mul` game loops.

        Args:
            actions: An action for each agent.

        Returns:
            Five dicts whose keys are the agents: observations, rewards, terminations, truncations,
            infos. After a fault of a game all agents are truncated, with `sc2pool.fault` in the
            infos; the next `reset` begins on new games.

        Raises:
            ActionError: an agent is unknown, or its action is missing or outside its action space.
            ResetNeeded: the episode is over, or none has begun.
        """
        if not self.agents:
            raise ResetNeeded("call reset() first: no episode is running")
        names = self.possible_agents
        if not isinstance(actions, Mapping) or set(actions) != set(names):
            given = list(actions) if isinstance(actions, Mapping) else actions
            raise ActionError(f"actions must be a dict with one of each of {names}, got {given!r}")
        self.pool.send([actions[name] for name in names])
        batch = self.pool.recv()
        if batch.terminated.any() or batch.truncated.any():
            self.agents = []
        return (
            self._observations(batch),
            dict(zip(names, batch.rewards.tolist(), strict=True)),
            dict(zip(names, batch.terminated.tolist(), strict=True)),
            dict(zip(names, batch.truncated.tolist(), strict=True)),
            dict(zip(names, batch.infos, strict=True)),
        )

    def _observations(self, batch: Batch) -> dict[str, Any]:
        """Return each agent's observation, and store the newest state for `state()`."""
        seen = [self.pool.row(batch, row) for row in range(len(self.possible_agents))]
        if self._shares_state:
            self._state = seen[0]["state"]
            seen = [one["observation"] for one in seen]
        if self._has_masks:
            seen = [
                {"observation": one, "action_mask": self._mask(row)} for row, one in enumerate(seen)
            ]
        return dict(zip(self.possible_agents, seen, strict=True))

    def _mask(self, row: int) -> Any:
        """An agent's mask, in the form that its action space's `sample` accepts."""
        space = self.action_spaces[self.possible_agents[row]]
        allowed = whole_mask(self.pool.action_mask(row), space).astype(np.int8)
        if isinstance(space, spaces.MultiDiscrete):
            return nested(tuple, np.split(allowed, space.nvec.cumsum()[:-1]), space.nvec.shape)
        return allowed

    def state(self) -> Array:
        """The state of the whole battle at the time of the newest observations.

        Raises:
            NotImplementedError: the task has no state.
            ResetNeeded: no episode has begun.
        """
        if not self._shares_state:
            raise NotImplementedError(f"{self.metadata['name']} has no state")
        if self._state is None:
            raise ResetNeeded("call reset() first: no episode has begun")
        return self._state.copy()

    def render(self) -> Any:
        """A frame that shows the current state of the first agent's game; see `SC2GymEnv.render`.

        Raises:
            ResetNeeded: no episode has begun.
        """
        return self._players.frame(self)

    def stats(self) -> PoolStats:
        """The pool's counters, and the state of each instance.

        Raises:
            ResetNeeded: the first reset, which makes the pool, has not happened.
        """
        return self.pool.stats()

    def close(self) -> None:
        """End the games and their worker; may be called again."""
        self.agents = []
        if self._pool is not None:
            self._pool.close()


def with_shared_state(task: type[TaskDefinition]) -> type[TaskDefinition]:
    """The task; if it has a state, a subclass that adds the state to each row's observation."""
    if not issubclass(task, TeamTask) or task.state_space is None or task.shares_state:
        return task
    members = {"shares_state": True, "__module__": task.__module__, "__doc__": task.__doc__}
    shared = type(task.__name__, (task,), members)
    assert issubclass(shared, TaskDefinition)
    return shared


def names_of(task: type[TaskDefinition], *, alone: bool) -> list[str]:
    """The names of the agents: a team's members, the learning players, or two teams' members.

    If `alone`, only one player learns, and an opponent plays the other side.
    """
    players = [f"player_{i}" for i in range(1 if alone else task.players)]
    if not issubclass(task, TeamTask):
        return players
    if task.players == 1:
        return list(task.agents)
    return [f"{player}_{agent}" for player in players for agent in task.agents]


def mask_space(actions: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of the masks for an action space, in the form that `sample` accepts.

    `ConfigError` if the action space is neither Discrete nor MultiDiscrete.
    """
    if isinstance(actions, spaces.Discrete):
        return spaces.Box(0, 1, (int(actions.n),), np.int8)
    if isinstance(actions, spaces.MultiDiscrete):
        each = [spaces.Box(0, 1, (int(n),), np.int8) for n in actions.nvec.ravel()]
        tuples: spaces.Space[Any] = nested(spaces.Tuple, each, actions.nvec.shape)
        return tuples
    raise ConfigError(f"masks are of Discrete or MultiDiscrete actions, got {actions}")


def nested(tuple_of: Callable[[Sequence[Any]], Any], parts: Sequence[Any], shape: Any) -> Any:
    """Nest the parts in tuples, like the elements of an array of this shape."""
    if len(shape) == 1:
        return tuple_of(parts)
    size = len(parts) // shape[0]
    rows = [parts[i : i + size] for i in range(0, len(parts), size)]
    return tuple_of([nested(tuple_of, row, shape[1:]) for row in rows])
