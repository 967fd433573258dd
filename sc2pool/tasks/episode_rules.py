"""The rules of an episode: what an observation of the game means for the learner.

    `Task` in the pool, `Task` under python-sc2's loop, `RLBotAI` under both
        └─ each observation ─► EpisodeRules ─► Transition

Rules, the same for all of them:
- the hooks are called once for each observation, in this order: `observe`, `reward`,
  `terminated`, `info`, `action_masks`; so the later ones can use what `observe` has found;
- the first observation has reward 0, and asks neither `reward` nor `terminated`: no step led to it;
- an episode that reaches `max_loops` is truncated; one that the game ends before is terminated;
- an episode of `max_episode_steps` steps is truncated, too;
- `terminated` is asked on the last observation too, so an episode can be terminated and truncated;
- `score_change` is the change of the game's score since the observation before;
- what a task's hooks return is checked; an error names the hook, its class and its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ObservationError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.queue_pair import Transition, check_info


class EpisodeRules:
    """Turns the observations of one episode into transitions.

    Args:
        task: the episode's task object; its hooks see the newest observation already.

    Attributes:
        begun: the first transition has been made.
        over: the last transition has been made.
    """

    def __init__(self, task: TaskDefinition) -> None:
        self._task = task
        self._score: int | None = None
        self._steps = 0
        self.over = False

    @property
    def begun(self) -> bool:
        return self._score is not None

    async def transition(
        self, game_loop: int, score: int, *, game_ended: bool = False
    ) -> Transition:
        """The transition of the newest observation.

        Raises:
            ObservationError: a hook returned what it must not; names it.
        """
        task, before = self._task, self._score
        self._score = score
        task.score_change = 0.0 if before is None else float(score - before)
        # `awaited` by itself would do; a call of it costs as much as a usual hook.
        observation = task.observe()
        if type(observation) not in PLAIN:
            observation = await awaited(observation)
        reward, terminated, truncated = 0.0, game_ended, False
        if before is not None:
            value: Any = task.reward()
            if type(value) not in PLAIN:
                value = await awaited(value)
            reward = value
            if type(value) is not float or not isfinite(value):
                reward = as_reward(task, value)
            ends: Any = task.terminated()
            if type(ends) not in PLAIN:
                ends = await awaited(ends)
            task_ends = ends if type(ends) is bool else as_flag(task, ends)
            terminated, truncated = how_it_ends(
                game_loop, task.max_loops, game_ended=game_ended, task_ends=task_ends
            )
            self._steps += 1
            truncated |= self._steps == task.max_episode_steps
        self.over = terminated or truncated
        info: Any = task.info()
        if type(info) not in PLAIN:
            info = await awaited(info)
        if type(info) is not dict or info:
            info = as_info(task, info)
            check_info(info)
        hook = getattr(task, "action_masks", None)
        masks = None if hook is None else await awaited(hook())
        return Transition(observation, reward, terminated, truncated, info, masks)


def how_it_ends(
    game_loop: int, max_loops: int | None, *, game_ended: bool, task_ends: bool
) -> tuple[bool, bool]:
    """Two flags: a step's observation terminates the episode, truncates it.

    Args:
        game_loop: the observation's.
        max_loops: the task's time limit, or None.
        game_ended: whether the game has ended. Mini-games end by themselves at their time limit:
            if that is the task's limit too, the episode is truncated, not terminated.
        task_ends: what the task's `terminated` says.
    """
    truncated = max_loops is not None and game_loop >= max_loops
    return task_ends or (game_ended and not truncated), truncated


PLAIN = frozenset({np.ndarray, np.float64, float, int, bool, dict, list, tuple, type(None)})
"""Types that nearly every hook returns; `isawaitable` would cost a microsecond for each."""


async def awaited(value: Any) -> Any:
    """The value that a hook returned; an `async` hook is awaited."""
    if type(value) in PLAIN:
        return value
    return await value if inspect.isawaitable(value) else value


def as_reward(task: object, value: Any) -> float:
    """What `reward` returned.

    Raises:
        ObservationError: it is no number, or NaN or infinite.
    """
    # An array without dimensions is what numpy's functions return for one number.
    is_array = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    if is_array or isinstance(value, Real | np.bool_):
        with suppress(OverflowError):  # an int may be too large
            reward = float(value)
            if isfinite(reward):
                return reward
    raise wrong(task, "reward", value, "a finite number")


def as_flag(task: object, value: Any) -> bool:
    """What `terminated` returned.

    Raises:
        ObservationError: it is an array, or another value that is neither true nor false.
    """
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise wrong(task, "terminated", value, "true or false") from None


def as_info(task: object, value: Any) -> Mapping[str, Any]:
    """What `info` returned; None is an empty one.

    Raises:
        ObservationError: it is no dict.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(task, "info", value, "a dict")
    return value


def as_result(task: object, value: Any) -> int | None:
    """What `result` returned; None is undecided.

    Raises:
        ObservationError: it is no `sc2api_pb2.Result`.
    """
    if value is None or (isinstance(value, int) and value in sc_pb.Result.values()):
        return value
    raise wrong(task, "result", value, "None or a sc2api_pb2.Result, such as sc2api_pb2.Victory")


def wrong(task: object, hook: str, value: object, expected: str) -> ObservationError:
    """The error that names the hook and what it returned."""
    given = f"{value!r:.80} of type {type(value).__name__}" if value is not None else "nothing"
    return ObservationError(f"{place_of(task, hook)} returned {given}, expected {expected}")


def place_of(task: object, hook: str) -> str:
    """`Walk.reward() (my_tasks.py, line 12)`; the name alone if it is not written in Python."""
    function = getattr(type(task), hook, None)
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
    return f"{type(task).__name__}.{hook}(){place}"
