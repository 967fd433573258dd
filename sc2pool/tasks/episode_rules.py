"""The rules of an episode: they turn an observation of the game into a transition.

The rules are the same for a `Task` and an `RLBotAI`, in the pool and under python-sc2's loop.

`DrivenTask` drives a `Task` through one episode; the pool, a match or python-sc2 steps the game.
The calls are `begin`, `transition`, and then `turn` and `see` in each step. `turn` returns the
commands, and `see` returns the transition of the step's observation.

The rules, which are the same for all tasks:
* The hooks are called once for each observation, in the order `observe`, `reward`, `terminated`,
  `info`, `action_masks`. So the hooks after `observe` can use values that `observe` has stored.
* The first observation has reward 0. `reward` and `terminated` are not called for the first
  observation, because no step led to it.
* An episode that reaches `max_loops` is truncated; if the game ends earlier, it is terminated.
* An episode of `max_episode_steps` steps is also truncated.
* `terminated` is called even for an episode's last observation, so an episode can be both
  terminated and truncated.
* `score_change` is the change of the game's score since the previous observation.
* The return values of the hooks are checked. An error names the hook, its class, file and line.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import as_actions
from sc2pool.errors import ObservationError
from sc2pool.game.clock import Tick
from sc2pool.game.game import Step
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.queue_pair import Transition, check_info
from sc2pool.tasks.task import Task, TaskDefinition


class EpisodeRules:
    """Turns the task's observations into transitions; `over` is True after the last one."""

    def __init__(self, task: TaskDefinition) -> None:
        self._task = task
        self._score: int | None = None
        self._steps = 0
        self.over = False

    @property
    def begun(self) -> bool:
        """True if the first transition has been made."""
        return self._score is not None

    async def transition(
        self, game_loop: int, score: int, *, game_ended: bool = False
    ) -> Transition:
        """The transition of the newest observation; ObservationError if a hook's value is wrong."""
        task, before = self._task, self._score
        self._score = score
        task.score_change = 0.0 if before is None else float(score - before)
        # The tests for `PLAIN` only save time: a call of `awaited` costs as much as a typical hook.
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


class DrivenTask:
    """Calls the hooks of one task object; `rules.over` is True after the episode's end."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.rules = EpisodeRules(task)

    async def begin(self, game: Any, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        """Give the task its game, the map and the first observation, and call `on_start`."""
        task = self._task
        task.lazy_observation = observed
        task.game = game
        task.game_info = game_info
        await awaited(task.on_start())

    async def transition(
        self, observed: Observed | None = None, *, game_ended: bool = False
    ) -> Transition:
        """The transition of an observation, by default of the newest one after `on_start`."""
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

    def see(self, step: Step, tick: Tick | None) -> Awaitable[Transition]:
        """The transition after a step. `tick` says how late the step was, in real time."""
        task, observed = self._task, step.observed
        if tick is not None:
            task.delay_s = tick.gap_s
        task.action_results = tuple(step.action_results)
        task.lazy_observation = observed
        # The awaitable is returned, because awaiting it here would cost a coroutine in each step.
        return self.rules.transition(observed.game_loop, observed.score, game_ended=step.ended)


def how_it_ends(
    game_loop: int, max_loops: int | None, *, game_ended: bool, task_ends: bool
) -> tuple[bool, bool]:
    """Whether an observation terminates the episode, and whether the observation truncates it.

    A mini-game ends by itself at its time limit. If `max_loops` is equal to the mini-game's limit,
    the episode is truncated, not terminated.
    """
    truncated = max_loops is not None and game_loop >= max_loops
    return task_ends or (game_ended and not truncated), truncated


PLAIN = frozenset({np.ndarray, np.float64, float, int, bool, dict, list, tuple, type(None)})
"""The types of nearly all values that hooks return. Only for values of other types, the rules call
`isawaitable`, which costs a microsecond."""


async def awaited(value: Any) -> Any:
    """The value that a hook returned; an `async` hook is awaited."""
    if type(value) in PLAIN:
        return value
    return await value if inspect.isawaitable(value) else value


def as_reward(task: object, value: Any) -> float:
    """The value of `reward` as a float; ObservationError unless it is a finite number."""
    # numpy's functions return an array without dimensions for a single number.
    is_array = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    if is_array or isinstance(value, Real | np.bool_):
        with suppress(OverflowError):  # an int may be too large for a float
            reward = float(value)
            if isfinite(reward):
                return reward
    raise wrong(task, "reward", value, "a finite number")


def as_flag(task: object, value: Any) -> bool:
    """The value of `terminated` as a bool; ObservationError for another value, such as an array."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise wrong(task, "terminated", value, "true or false") from None


def as_info(task: object, value: Any) -> Mapping[str, Any]:
    """The dict that `info` returned, empty for None; ObservationError if it is not a dict."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(task, "info", value, "a dict")
    return value


def as_result(task: object, value: Any) -> int | None:
    """The value of `result`; ObservationError unless it is a `sc2api_pb2.Result` or None."""
    if value is None or (isinstance(value, int) and value in sc_pb.Result.values()):
        return value
    raise wrong(task, "result", value, "None or a sc2api_pb2.Result, such as sc2api_pb2.Victory")


def wrong(task: object, hook: str, value: object, expected: str) -> ObservationError:
    """An error that names the hook and its return value."""
    given = f"{value!r:.80} of type {type(value).__name__}" if value is not None else "nothing"
    return ObservationError(f"{place_of(task, hook)} returned {given}, expected {expected}")


def place_of(task: object, hook: str) -> str:
    """The hook's place, as `Walk.reward() (my_tasks.py, line 12)`; only its name if the hook is not
    written in Python."""
    function = getattr(type(task), hook, None)
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
    return f"{type(task).__name__}.{hook}(){place}"
