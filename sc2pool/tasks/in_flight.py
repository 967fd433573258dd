"""`ActionInFlight`: adds the last action and its delay to the observation.

In real time an observation alone is not a Markov state. The last action may not have taken effect
yet, and its delay predicts the delay of the next action. With the action and its delay in the
observation, the task is a Markov decision process again. (Ramstedt & Pal, "Real-Time Reinforcement
Learning", 2019; Bouteiller et al., "Reinforcement Learning with Random Delays", 2021.)

    class InFlight(ActionInFlight, MoveToBeacon):
        ...

Rule: the definition of the class computes the observation space from the task's own space. So the
space always fits the values of `observe`, and a wrong combination of classes raises an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.tasks.episode_rules import awaited
from sc2pool.tasks.task import TaskDefinition, TeamTask

_KEYS = ("observation", "last_action", "delay_periods")


class ActionInFlight(TaskDefinition):
    """A mixin, listed before the task's class: the observation becomes a dict of three parts.

    - `observation`: the task's own observation.
    - `last_action`: the action before this observation. For actions in `Discrete(n)`, the space of
      `last_action` is `Discrete(n+1)`, whose last value means "none yet". For `MultiDiscrete`, each
      component also has one more value, which means "none yet". For discrete actions, the dtype is
      int64, because their own dtype may lack room for one more value. For `Box` and `MultiBinary`,
      the space is the action space, and zeros (clipped to the bounds) mean "none yet".
    - `delay_periods`: float32, (1,): the delay of the last action in decision periods; 0 if the
      game waits for actions.

    Raises:
        ConfigError: the first base class is not `ActionInFlight`, the task is for a team, or
            the action space is of a kind that is not named above.
    """

    _nothing_done: Any
    _dtype: np.dtype[Any] | None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if ActionInFlight not in cls.__bases__:
            return  # a base class has combined and checked the spaces
        if getattr(cls, "observe", None) is not ActionInFlight.observe:
            raise ConfigError(f"{cls.__name__}: ActionInFlight must be the first of its bases")
        if issubclass(cls, TeamTask):
            raise ConfigError(f"{cls.__name__}: ActionInFlight is not for the agents of a team")
        space, cls._nothing_done = in_flight_space(
            cls.observation_space, cls.action_space, cls.__name__
        )
        cls.observation_space, cls._dtype = space, space["last_action"].dtype

    async def observe(self) -> dict[str, Any]:
        """Return the dict of the three parts."""
        task: Any = super()  # the task's class is the next base class
        last = self._nothing_done if self.last_action is None else self.last_action
        last = np.asarray(last, self._dtype)
        periods = self.delay_s * LOOPS_PER_S / self.step_mul
        parts = (await awaited(task.observe()), last, np.array([periods], np.float32))
        return dict(zip(_KEYS, parts, strict=True))


def in_flight_space(
    observation_space: spaces.Space[Any], action_space: spaces.Space[Any], name: str
) -> tuple[spaces.Dict, Any]:
    """The space of the three parts, and the action for "none yet"; ConfigError for other spaces."""
    shown, nothing_done = _shown(action_space, name)
    delay = spaces.Box(0.0, np.inf, (1,), np.float32)
    parts = (observation_space, shown, delay)
    return spaces.Dict(dict(zip(_KEYS, parts, strict=True))), nothing_done


def _shown(space: spaces.Space[Any], name: str) -> tuple[spaces.Space[Any], Any]:
    """The space of `last_action`, and the element that means "none yet"."""
    if isinstance(space, spaces.Discrete):
        n, start = int(space.n), int(space.start)
        return spaces.Discrete(n + 1, start=start), start + n
    if isinstance(space, spaces.MultiDiscrete):
        counts, starts = space.nvec.astype(np.int64), space.start.astype(np.int64)
        return spaces.MultiDiscrete(counts + 1, start=starts), starts + counts
    if isinstance(space, spaces.Box):
        return space, np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    if isinstance(space, spaces.MultiBinary):
        return space, np.zeros(space.shape, space.dtype)
    raise ConfigError(f"{name}: ActionInFlight cannot show actions of {space}")
