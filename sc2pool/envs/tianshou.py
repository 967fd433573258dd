"""`SC2TianshouVectorEnv`: the pool as a tianshou `BaseVectorEnv`.

Rules are tianshou's (`tianshou/env/venvs.py`): the trainer resets an env whose episode is over; in
an asynchronous env, a step returns when the first envs are ready. As in sc2pool's other env
classes, the pool begins the next episode by itself. So an env whose episode is over is ready when
its next episode's first observation has arrived, and `reset` returns this observation at once, even
while other envs step. Keys that the pool adds to an info begin with `sc2pool.`, and their values
are numbers: tianshou's buffers fill a missing text with None, which tianshou's trainer refuses.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from tianshou.env import BaseVectorEnv

from sc2pool import PoolStats
from sc2pool.config import is_number
from sc2pool.errors import ConfigError
from sc2pool.integration import (
    EnvFns,
    PoolKeywords,
    begin_episodes,
    check_keywords,
    make_players,
    seed_of_each,
)
from sc2pool.pool.batch import Batch
from sc2pool.utilities import Array, whole_number

EnvIds = int | Iterable[int] | None
Seeds = int | Sequence[int | None] | None

_ARRAY_SPACES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)
"""The kinds of spaces whose observations form one array."""


class SC2TianshouVectorEnv(BaseVectorEnv):
    """n StarCraft II games, or n environments of the user, stepped as one batch.

        SC2TianshouVectorEnv("MoveToBeacon", n=8)
        SC2TianshouVectorEnv([make_env, make_env], wait_num=1)

    Args:
        env_fns: Functions that make one gymnasium env each. A task or n may replace the functions.
        wait_num: How many envs must be ready before a step returns; None for all (synchronous).
        timeout: After this many seconds, a step waits for only one env; None for no limit.

    The other keywords are those of `SubprocSC2VecEnv`.

    Attributes: tianshou's (`env_num`, `wait_num`, `timeout`, `is_async`, `waiting_id`, `ready_id`,
    `is_closed`, and the lists `action_space`, `observation_space` and `metadata`, with an element
    for each env), `render_mode`, and `pool`, the pool itself.

    Raises:
        ConfigError: a wrong keyword or one without effect, an unknown task, no installation, a
            missing map, spaces that differ, observations that are a Tuple, or a task with several
            learning players.
        UserCodeError: a function of `env_fns` raised an exception.
    """

    def __init__(
        self,
        env_fns: EnvFns = None,
        wait_num: int | None = None,
        timeout: float | None = None,
        **games: Unpack[PoolKeywords],
    ) -> None:
        check_keywords(type(self).__name__, games, PoolKeywords)
        self._players = players = make_players(env_fns, **games)
        players.require_one_row(type(self).__name__)
        self.env_num = len(players.specs)
        self.wait_num = self.env_num if wait_num is None else whole_number("wait_num", wait_num, 1)
        if self.wait_num > self.env_num:
            raise ConfigError(f"wait_num must be 1 to {self.env_num}, got {wait_num!r}")
        if timeout is not None and not (is_number(timeout) and timeout > 0):
            raise ConfigError(f"timeout must be None or more than 0 seconds, got {timeout!r}")
        self.timeout = timeout
        self.is_async = self.wait_num != self.env_num or timeout is not None
        self.waiting_id: list[int] = []
        self._seed: Seeds = players.seed
        self._begun: dict[int, tuple[Any, dict[str, Any]]] = {}
        """The next episode's first observation and info of each env, until `reset` returns them."""
        self.pool = players.make_pool()
        self.render_mode = self.pool.render_mode
        if isinstance(self.pool.observation_space, spaces.Tuple):
            self.pool.close()
            raise ConfigError("tianshou takes no observations that are a Tuple; make them a Dict")
        self._is_array = isinstance(self.pool.observation_space, _ARRAY_SPACES)

    def __repr__(self) -> str:
        return self._players.describe(self, self.pool)

    @property
    def ready_id(self) -> list[int]:
        """The envs that may be stepped or reset."""
        return [env for env in range(self.env_num) if env not in self.waiting_id]

    @property
    def is_closed(self) -> bool:
        """True if the env is closed."""
        return self.pool.closed

    def reset(
        self,
        env_id: EnvIds = None,
        *,
        seed: Seeds = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Array, Array]:
        """Begin an episode in each of these envs.

        Args:
            env_id: One index or several. None for all envs, which also drops the pending steps.
            seed: The seed, as in `seed`.
            options: The options, passed to each env's own `reset`.

        Returns:
            Observations and infos of k envs, in the order of `env_id`. Observations are an array
            with a first axis of length k. If the space has more than one array, they are an array
            of objects. Infos are an array of k dicts.

        Raises:
            ResetNeeded: the first reset does not reset all envs.
            AlreadyPendingCallError: while steps are pending, a seed or options are given, or an env
                to reset has a running episode. Receive the pending steps first, with `step(None)`.
            CrashLoopError, UserCodeError, ObservationError: see their docstrings; every later call
                raises `ClosedError`.
        """
        envs = self._envs(env_id)
        if env_id is None and seed is None:
            seed, self._seed = self._seed, None
        anew = env_id is None or seed is not None or options
        begin = [env for env in sorted(envs) if anew or env not in self._begun]
        if begin:
            self._begin(begin, seed, options or {})
        firsts = [self._begun.pop(env) for env in envs]
        return self._stacked([first for first, _ in firsts]), _objects([info for _, info in firsts])

    def _begin(self, envs: Sequence[int], seed: Seeds, options: Mapping[str, Any]) -> None:
        if len(envs) < self.env_num:
            if not self.pool.began:
                raise ResetNeeded("the first reset must be one of all envs: give no env_id")
            if self.waiting_id:
                raise AlreadyPendingCallError(
                    f"receive the pending steps of envs {self.waiting_id} with step(None) before "
                    f"you reset envs {list(envs)}",
                    "reset",
                )
        begin_episodes(self.pool, envs, seed, options, is_task=self._players.is_task)
        self.waiting_id = []
        self._keep_first_observations(self.pool.recv())

    def step(self, action: Any, id: EnvIds = None) -> tuple[Array, Array, Array, Array, Array]:
        """Send actions, and wait for all envs, or for the first `wait_num` pending envs.

        Args:
            action: An action for each env of `id`. In an asynchronous env None sends no action.
            id: The index of an env, or several indices; None for all envs.

        Returns:
            A tuple for k envs: observations, as from `reset`; rewards, float64 (k,); terminations
                and truncations, bool (k,); and infos, an array of k dicts. If an episode is over,
                the observation is the last one of this episode. The rows have the order of `id`,
                except in an asynchronous env, where each info names its env as `env_id`. If a game
                fails, its env is truncated, with `sc2pool.synthetic` and `sc2pool.fault` (instance,
                recovery_s) in the info; `stats().events` has the details.

        Raises:
            ActionError: an action is outside the space; nothing has been sent to any game.
            ResetNeeded: an env's episode is over, or no episode has begun.
            AlreadyPendingCallError: a step of an env is pending.
            NoAsyncCallError: `action` is None, and no step is pending.
            ValueError: `action` is None, and the env is synchronous.
            All other errors: see `reset`.
        """
        envs = self._envs(id)
        if action is not None:
            self._send(action, envs)
        elif not self.is_async:
            raise ValueError("action is None, but only an asynchronous env has steps pending")
        batch = self._receive()
        received = batch.envs.tolist()
        self.waiting_id = [env for env in self.waiting_id if env not in received]
        observations = [self.pool.row(batch, row) for row in range(len(received))]
        for row, (env, info) in enumerate(zip(received, batch.infos, strict=True)):
            info["env_id"] = env
            if "sc2pool.fault" in info:
                info["sc2pool.fault"] = _numbers(info["sc2pool.fault"])
            if env in self._begun:
                observations[row] = batch.final_observations[row]
        order = range(len(received)) if self.is_async else [received.index(env) for env in envs]
        return (
            self._stacked([observations[row] for row in order]),
            batch.rewards[order],
            batch.terminated[order],
            batch.truncated[order],
            _objects([batch.infos[row] for row in order]),
        )

    def _send(self, actions: Any, envs: Sequence[int]) -> None:
        over = sorted(self._begun.keys() & set(envs))
        if over:
            raise ResetNeeded(f"the episodes of envs {over} are over: reset them first")
        in_order = list(envs) == list(range(self.env_num))
        self.pool.send(actions, None if in_order else envs)
        self.waiting_id += envs

    def _receive(self) -> Batch:
        if not self.is_async:
            batch = self.pool.recv()
        else:
            batch = self.pool.recv(self.wait_num, self.timeout)
            while not len(batch.envs):
                batch = self.pool.recv(1)
        self._keep_first_observations(batch)
        return batch

    def _keep_first_observations(self, batch: Batch) -> None:
        for row, (env, info) in enumerate(zip(batch.envs.tolist(), batch.reset_infos, strict=True)):
            if info is not None:
                self._begun[env] = self.pool.row(batch, row), info

    def _stacked(self, observations: Sequence[Any]) -> Array:
        return np.stack(observations) if self._is_array else _objects(observations)

    def seed(self, seed: Seeds = None) -> list[list[int] | None]:
        """Seed the next reset of all envs.

        Args:
            seed: The seeds, as in `SC2VectorEnv.reset`. For tasks, one seed is the seed of the run;
                env i of `env_fns` gets `seed + i`. With a list, env i gets the i-th element.

        Returns:
            For each env a list with its seed, or None, as in tianshou.

        Raises:
            ValueError: a list of another length.
            ConfigError: a seed that is not a whole number of at least 0.
        """
        seeds = seed_of_each(seed, self.env_num)
        self._seed = seed
        return [None if one is None else [one] for one in seeds]

    def get_env_attr(self, key: str, id: EnvIds = None) -> list[Any]:
        """Read the attribute of each of these envs, after waiting for their pending steps.

        Raises:
            AttributeError: an env has no such attribute.
        """
        return self.pool.call(self._envs(id), "get_attr", key)

    def set_env_attr(self, key: str, value: Any, id: EnvIds = None) -> None:
        """Set an attribute of each of these envs; it survives resets and replaced instances."""
        self.pool.set_attr(self._envs(id), key, value)

    def render(self) -> list[Any]:
        """A frame of each env; None for each env if a task's render mode is None or "human".

        Raises:
            ResetNeeded: no episode of a task has begun.
        """
        if self._players.is_task and self.render_mode in (None, "human"):
            return [None] * self.env_num
        return self.pool.render(range(self.env_num))

    def stats(self) -> PoolStats:
        """The pool's counters, and the state of each instance."""
        return self.pool.stats()

    def close(self) -> None:
        """End every worker and game within a time limit; may be called again."""
        self.pool.close()

    def _envs(self, env_ids: EnvIds) -> list[int]:
        """Convert tianshou's indices (None for all, one, or many) to 0 … n-1."""
        if env_ids is None:
            return list(range(self.env_num))
        many = env_ids if isinstance(env_ids, Iterable) else [env_ids]
        return [range(self.env_num)[operator.index(env)] for env in many]


def _numbers(fault: Mapping[str, Any]) -> dict[str, Any]:
    """The numeric fields of a fault dict."""
    return {name: value for name, value in fault.items() if isinstance(value, int | float)}


def _objects(values: Sequence[Any]) -> Array:
    """Put the values into a one-dimensional array of objects, even if they are sequences."""
    return np.fromiter(values, object, len(values))
