"""`SC2VectorEnv`: the pool as a gymnasium `VectorEnv`.

The rules are those of gymnasium's `AsyncVectorEnv`: an env whose episode is over is reset by the
next step (NEXT_STEP), by the step that ends it (SAME_STEP), or by the trainer (DISABLED). Infos are
a dict of arrays with `_key` masks. A wrong call raises an error of `gymnasium.error`. Three rules
are stricter:
* A returned batch is never overwritten.
* A reply that arrives after a timeout is never taken for the reply to a later step.
* If one action is wrong, no action is sent.
One rule is milder: an env whose method raises in `call` continues.

`Pending` keeps the state of the pending call, in gymnasium's terms:

    Calls: check_idle ─► state = WAITING_… ─► receive(state, timeout) ─► DEFAULT
                                              └─ timed out, interrupted: received later, or
                                                 dropped by the next call.

As in gymnasium, this state is that of the whole vector env; the pool knows the state of each env's
step. Only one call is pending at a time. Exceptions of the user's envs are raised unchanged.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np
from gymnasium import logger
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from sc2pool.envs.arguments import (
    ObservationMode,
    Seeds,
    VectorSpaces,
    begin_episodes,
    check_concurrency,
    split_mask,
    whole_envs,
)
from sc2pool.envs.shared_keywords import (
    EnvFns,
    PoolKeywords,
    check_keywords,
    check_start_method,
    make_players,
)
from sc2pool.errors import (
    ClosedError,
    ConfigError,
    InterruptedCallError,
    SC2PoolError,
    UserCodeError,
)
from sc2pool.pool.batch import ARRAY_SPACES, Batch, check_count
from sc2pool.pool.ipc import RemoteTraceback
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.layout import Array, space_layout
from sc2pool.pool.statistics import PoolStats
from sc2pool.pool.vec_pool import masks_of

Step = tuple[Any, Array, Array, Array, dict[str, Any]]

_MARKS = ("sc2pool.synthetic", "sc2pool.fault")
_NOT_BY_CALL = ("reset", "step", "close", "_setattr", "_check_spaces")


class SC2VectorEnv(VectorEnv[Any, Any, Array]):
    """n StarCraft II games, or n environments of the user, stepped as one batch.

    If a task has several learning players in one game, each player is an env, as in
    `SubprocSC2VecEnv`.

        SC2VectorEnv("MoveToBeacon", n=8)
        SC2VectorEnv([make_env, make_env])

    Args:
        env_fns: Functions that make one gymnasium env each. A task or n may replace the functions.
        shared_memory: False allows spaces that are not gymnasium's own, as in `AsyncVectorEnv`.
        copy: A keyword without effect, because a returned batch is never overwritten.
        context: A start method. The name is checked but has no effect, because every worker is a
            new interpreter.
        daemon: A keyword without effect, because workers end with the trainer anyway, and may have
            children.
        worker: A keyword that must be None, because the pool has workers of its own.
        observation_mode: "same", "different", or (batched space, single space).
        autoreset_mode: An `AutoresetMode`, or its value.
        max_concurrency: How many envs of `env_fns` may step or reset at one time; None for all.
        max_episode_steps: For tasks: an episode is truncated after this number of steps; None or -1
            for no limit. `gymnasium.make_vec` passes its own keyword `max_episode_steps`, or else
            the value in its registry.
        seed: The seed of the first reset, unless the caller gives that reset a seed.

    The other keywords are those of `SubprocSC2VecEnv`.

    Attributes: gymnasium's (`num_envs`, `single_observation_space`, `single_action_space`,
    `observation_space`, `action_space`, `render_mode`, `closed`, `metadata["autoreset_mode"]`),
    `realtime`, `step_mul` (game loops per step, None for `env_fns`), and `pool`, the pool itself.

    Raises:
        ConfigError: a wrong keyword or one without effect, an unknown task, no installation, or a
            missing map.
        RuntimeError: the envs' spaces differ.
        ValueError: unknown observation mode, autoreset mode or start method.
        Exception: a function of `env_fns` raised this exception.
    """

    _call: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})

    def __init__(  # noqa: PLR0917 - these are AsyncVectorEnv's, in its order
        self,
        env_fns: EnvFns = None,
        shared_memory: bool = True,
        copy: bool = True,  # noqa: ARG002
        context: str | None = None,
        daemon: bool = True,  # noqa: ARG002
        worker: Callable[..., None] | None = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        max_episode_steps: int | None = None,
        **games: Unpack[PoolKeywords],
    ) -> None:
        self.closed = True  # `__del__` calls `close`, even if the constructor fails
        if worker is not None:
            raise ConfigError(
                f"worker must be None, because the pool has workers of its own, got {worker!r}"
            )
        check_keywords(type(self).__name__, games, PoolKeywords)
        check_start_method("context", context)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        spaces = VectorSpaces(observation_mode, shared_memory)
        at_once = check_concurrency(max_concurrency)
        if max_episode_steps == -1:  # as in `gymnasium.make`, -1 means no limit
            max_episode_steps = None
        self._players = players = make_players(
            env_fns, max_episode_steps=max_episode_steps, **games
        )
        self._is_task = players.is_task
        if self._is_task and at_once is not None:
            raise ConfigError("max_concurrency is for env_fns; with a task it must be None")
        try:
            self.pool = players.make_pool(
                autoreset=self.autoreset_mode is AutoresetMode.SAME_STEP,
                max_concurrency=at_once,
                agree=spaces.agree,
            )
        except UserCodeError as error:
            raise of_the_env(error) from RemoteTraceback(str(error))
        self.closed = False
        self.num_envs = self.pool.n_rows
        self.single_observation_space = spaces.single_observation_space
        self.single_action_space = spaces.single_action_space
        self.observation_space = spaces.observation_space
        self.action_space = spaces.action_space
        self.metadata = {**self.pool.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self.pool.render_mode
        self.realtime = players.realtime
        self.step_mul = players.step_mul
        self._one_array = isinstance(self.single_action_space, ARRAY_SPACES)
        self._gathered = space_layout(self.pool.observation_space, 0).fixed
        self._pending = Pending(self.pool, users_errors=not self._is_task)

    def __repr__(self) -> str:
        return self._players.describe(self, self.pool)

    # Resets.

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every env, or in those of `options["reset_mask"]`.

        Args:
            seed: One seed for all envs, or a list with a seed or None for each env. If several envs
                share a game, the seed of the game's first env counts. Equal seeds exactly repeat
                this episode and all later episodes. With a single seed, env i of `env_fns` gets
                `seed + i`, as in gymnasium. For tasks, a single seed is the seed of the run: the
                game seed of the k-th episode that begins is derived from `seed` and k, as in
                `SubprocSC2VecEnv`. Different seeds, such as 7 and 8, have no episode in common. The
                first episode of env i is the i-th episode after `SC2GymEnv.reset(seed=seed)`. With
                a list, env i begins with the first episode after `SC2GymEnv.reset(seed=seeds[i])`.
            options: The options. `reset_mask`, bool (num_envs,), selects the envs; it must be equal
                for all envs of a game. All other options are passed to each env's own `reset`.

        Returns:
            The newest observation of each env, batched, and the infos of the resets. An env that
            the mask leaves out keeps its observation.

        Raises:
            AlreadyPendingCallError, ClosedEnvironmentError: a pending call, or a closed env.
            ResetNeeded: the mask of the first reset leaves envs out.
            TypeError, ValueError: a wrong mask or seed, a list of the wrong length, or a mask that
                selects only some envs of a game.
            CrashLoopError, UserCodeError, ObservationError: see their docstrings; every later call
                raises `ClosedEnvironmentError`. Exceptions of the user's envs are raised unchanged.
        """
        with self._pending.both_parts():
            self.reset_async(seed=seed, options=options)
            return self.reset_wait()

    def reset_async(self, seed: Seeds = None, options: dict[str, Any] | None = None) -> None:
        """Begin a reset; `reset_wait` returns its result."""
        self._pending.check_idle("reset_async")
        chosen, others = split_mask(options, self.num_envs)
        envs = whole_envs(chosen, self.pool.rows)
        if not self.pool.began:
            if len(envs) < self.pool.n:
                raise ResetNeeded("the first reset must be one of all envs: give no reset_mask")
            if seed is None:
                seed = self._players.seed
        with self._pending.gymnasiums_errors():
            begin_episodes(self.pool, envs, seed, others, is_task=self._is_task)
        self._pending.state = AsyncState.WAITING_RESET

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Wait for the reset, at most `timeout` seconds; see `reset`.

        Raises:
            multiprocessing.TimeoutError: call `reset_wait` again; any other call drops the reset.
            NoAsyncCallError: no reset was begun.
        """
        batch = self._pending.receive(AsyncState.WAITING_RESET, timeout)
        observations = batch.observations
        if len(batch.envs) < self.pool.n:
            observations = self.pool.newest_observations()
        return self._batched(observations), self._infos_of(batch)

    # Steps.

    def step(self, actions: Any) -> Step:
        """Play one step in every env.

        Args:
            actions: An element of `action_space`, or a list with an element of
                `single_action_space` for each env.

        Returns:
            A tuple for n envs: observations (batched); rewards, float64 (n,); terminations and
            truncations, bool (n,); and infos, a dict of arrays (n,) with masks. In the mode
            NEXT_STEP, the step after an episode's end resets the env: the action has no effect, and
            the reward is 0. In the mode SAME_STEP, if an episode ends, its last observation and
            info are in the infos as `final_obs` and `final_info`; the returned observation and info
            are the next episode's. After a fault of a game its envs are truncated, with
            `sc2pool.synthetic` and `sc2pool.fault` in the info.

        Raises:
            ValueError: the number of actions is wrong, or an action is outside a task's space. No
                action was sent.
            TypeError: `actions` is not a batch.
            ResetNeeded: no episode of a task has begun, or, in the mode DISABLED, an episode is
                over.
            All other errors: see `reset`.
        """
        with self._pending.both_parts():
            self.step_async(actions)
            return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Send one action to each env."""
        self._pending.check_idle("step_async")
        if not self.pool.began:
            if self._is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()  # gymnasium allows a step before the first reset
        over = self.pool.over
        if over and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"the episodes of envs {self.pool.rows_of(over)} are over: reset them, with "
                "options['reset_mask']"
            )
        one_each = self._one_each(actions)
        with self._pending.gymnasiums_errors():
            if not over:
                self.pool.send(one_each)
            else:
                playing = [env for env in range(self.pool.n) if env not in over]
                if playing:
                    self.pool.send([one_each[row] for row in self.pool.rows_of(playing)], playing)
                self.pool.begin(over)
        self._pending.state = AsyncState.WAITING_STEP

    def step_wait(self, timeout: float | None = None) -> Step:
        """Wait for the step, at most `timeout` seconds; see `step`.

        Raises:
            multiprocessing.TimeoutError: call `step_wait` again; any other call drops the step.
            NoAsyncCallError: no step was begun.
        """
        batch = self._pending.receive(AsyncState.WAITING_STEP, timeout)
        return (
            self._batched(batch.observations),
            batch.rewards,
            batch.terminated,
            batch.truncated,
            self._infos_of(batch),
        )

    def _one_each(self, actions: Any) -> Any:
        """The actions in the order of the envs."""
        if not (self._one_array and isinstance(actions, np.ndarray) and actions.ndim):
            actions = list(iterate(self.action_space, actions))
        check_count(actions, self.num_envs)
        return actions

    def _batched(self, observations: Any) -> Any:
        """Observations in the structure of `observation_space`."""
        if self._gathered:
            return observations
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, observations, empty)

    def _infos_of(self, batch: Batch) -> dict[str, Any]:
        """Convert the batch's infos (a dict per env) to one dict of arrays."""
        infos: dict[str, Any] = {}
        rows = self.pool.rows
        for row, (info, reset_info) in enumerate(zip(batch.infos, batch.reset_infos, strict=True)):
            shown = info if reset_info is None else reset_info
            if reset_info is not None and (batch.terminated[row] or batch.truncated[row]):
                shown = {
                    "final_info": info,
                    "final_obs": batch.final_observations[row],
                    **reset_info,
                    **{mark: info[mark] for mark in _MARKS if mark in info},
                }
            if shown:
                env = int(batch.envs[row // rows]) * rows + row % rows
                infos = self._add_info(infos, shown, env)
        return infos

    # Methods and attributes of the envs.

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each env, or get an attribute.

        Returns:
            A result per env. A task's `action_masks` is not called, because the masks come with the
            newest observation. A mask is a bool array of shape (n,) for `Discrete(n)`, or
            (sum(nvec),) for `MultiDiscrete(nvec)`. The mask is all True if the task returned None.

        Raises:
            Exception: an env's method raised this exception; the envs continue.
            AttributeError: an env has no such attribute; the envs continue.
            ValueError: `name` is a method that the vector env has itself, such as `step`.
        """
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Store a call; `call_wait` carries it out."""
        self._pending.check_idle("call_async")
        if name in _NOT_BY_CALL:
            raise ValueError(
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        self._call = (name, args, kwargs)
        self._pending.state = AsyncState.WAITING_CALL

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """The results of the call, in the order of the envs.

        Raises:
            multiprocessing.TimeoutError: an env did not answer within `timeout` seconds. If
                `timeout` is None, the limit is `Limits.call_s`, and the env continues with a new
                instance.
            NoAsyncCallError: no call was begun.
        """
        self._pending.check_waiting(AsyncState.WAITING_CALL)
        self._pending.state = AsyncState.DEFAULT
        everyone = range(self.num_envs)

        def call() -> list[Any]:
            with self._pending.gymnasiums_errors():
                return self.pool.call(everyone, "call", *self._call, timeout_s=timeout)

        is_masks = self._call[0] == "action_masks"
        return tuple(masks_of(self.pool, everyone, call) if is_masks else call())

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute of each env; if it is a method, its result, as in `AsyncVectorEnv`.

        Raises:
            AttributeError: an env has no such attribute.
        """
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each env; it survives resets and replaced instances.

        Args:
            name: The attribute's name.
            values: A list or tuple with a value for each env, or one value for all.

        Raises:
            ValueError: a list of another length.
        """
        self._pending.check_open()
        one_each = isinstance(values, list | tuple)
        if one_each and len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        self._pending.check_idle("set_attr")
        with self._pending.gymnasiums_errors():
            if not one_each:
                self.pool.set_attr(range(self.num_envs), name, values)
                return
            for env, value in enumerate(values):
                self.pool.set_attr([env], name, value)

    @property  # type: ignore[misc]  # no setter, because n envs have n generators
    def np_random(self) -> Any:
        """The random generators of the user's envs; for tasks, a generator that no game uses."""
        return super().np_random if self._is_task else self.get_attr("np_random")

    @property
    def np_random_seed(self) -> Any:
        """The seed of each generator in `np_random`."""
        return super().np_random_seed if self._is_task else self.get_attr("np_random_seed")

    def render(self) -> tuple[Any, ...] | None:
        """The frames of all envs.

        Returns:
            For tasks a frame per env, uint8 (480, 640, 3), unless the task draws other frames.
            None for tasks in the mode `"human"`, whose web page shows the games without this
            method. None, with a warning, for tasks without a render mode.

        Raises:
            ResetNeeded: no episode of a task has begun.
        """
        if not self._is_task:
            return self.call("render")
        if self.render_mode is None:
            logger.warn("render() was called, but render_mode is None")
        if self.render_mode in (None, "human"):
            return None
        self._pending.check_idle("render")
        with self._pending.gymnasiums_errors():
            return tuple(self.pool.render(range(self.num_envs)))

    # The pool.

    def pause(self) -> None:
        """Stop each game until its next step or reset, or until `resume`.

        See `SubprocSC2VecEnv.pause`. An env whose episode is over has no running game to stop.

        Raises:
            AlreadyPendingCallError, ClosedEnvironmentError: a pending call, or a closed env.
            PauseError: a game could not be stopped; all games continue.
        """
        self._pending.check_idle("pause")
        with self._pending.gymnasiums_errors():
            self.pool.pause()

    def resume(self) -> None:
        """Let the games continue; without effect on games that are not paused."""
        self._pending.check_idle("resume")
        with self._pending.gymnasiums_errors():
            self.pool.resume()

    def stats(self) -> PoolStats:
        """The pool's counters, and the state of each instance."""
        return self.pool.stats()

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End every worker and game within a time limit.

        Args:
            timeout: How many seconds envs of the user may take to close; None for 2 s.
            terminate: If True, the envs of the user are killed immediately.
        """
        if self.pool.closed:
            return
        state = self._pending.state
        if state is not AsyncState.DEFAULT and not self._pending.late:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{state.value}` to complete."
            )
        self.pool.close(0.0 if terminate else timeout)


class Pending:
    """The pending call of a vector env. Exceptions of the user's envs are raised unchanged.

    `state` is the kind of the call, or DEFAULT if no call is pending. `late` is True if a wait for
    the reply has timed out or was interrupted.
    """

    def __init__(self, pool: Pool, *, users_errors: bool) -> None:
        self._pool = pool
        self._users_errors = users_errors
        self.state = AsyncState.DEFAULT
        self.late = False
        self._thread = threading.RLock()
        """A lock; the thread that makes a call holds it."""

    def check_open(self) -> None:
        """Raise `ClosedEnvironmentError` if the env is closed."""
        if self._pool.closed:
            raise ClosedEnvironmentError(
                "Trying to operate on `SC2VectorEnv`, after a call to `close()`."
            )

    def check_idle(self, name: str) -> None:
        """Drop a late reply, then raise an error if the call `name` may not begin now.

        `InterruptedCallError` if another thread waits for the reply, `ClosedEnvironmentError` if
        the env is closed, `AlreadyPendingCallError` if another call is pending.
        """
        self.check_open()
        if self.late:
            with self._one_thread():
                self.late = False
                self.state = AsyncState.DEFAULT
                if self._pool.pending:
                    with self.gymnasiums_errors():
                        self._pool.recv()
        if self.state is not AsyncState.DEFAULT:
            raise AlreadyPendingCallError(
                f"Calling `{name}` while waiting for a pending call to `{self.state.value}` to "
                "complete.",
                self.state.value,
            )

    def check_waiting(self, state: AsyncState) -> None:
        """Raise gymnasium's error if the env is closed, or if no call `state` was begun."""
        self.check_open()
        if self.state is not state:
            raise NoAsyncCallError(
                f"Calling `{state.value}_wait` without any prior call to `{state.value}_async`.",
                state.value,
            )

    def receive(self, state: AsyncState, timeout_s: float | None) -> Batch:
        """Wait for the replies of all envs; also raises the errors of `check_waiting`.

        If a reply is missing, raises `multiprocessing.TimeoutError` and takes no reply.
        """
        self.check_waiting(state)
        with self._one_thread(), self.gymnasiums_errors():
            self.late = True
            if timeout_s is not None and not self._pool.wait(timeout_s):
                raise multiprocessing.TimeoutError(
                    f"The call to `{state.value}_wait` has timed out after {timeout_s} second(s)."
                )
            batch = self._pool.recv()
        self.late = False
        self.state = AsyncState.DEFAULT
        return batch

    @contextmanager
    def both_parts(self) -> Iterator[None]:
        """A block that begins and awaits a call. After an interrupt, the call counts as late."""
        with self._one_thread():
            try:
                yield
            except AlreadyPendingCallError:
                raise
            except BaseException:
                self.late = self.state is not AsyncState.DEFAULT
                raise

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """A block in which no other thread may wait for the call or drop it.

        `InterruptedCallError` if another thread is in a call of this env.
        """
        if not self._thread.acquire(timeout=0.0):
            raise InterruptedCallError(
                "another thread is in a call of this env: one thread at a time"
            )
        try:
            yield
        finally:
            self._thread.release()

    @contextmanager
    def gymnasiums_errors(self) -> Iterator[None]:
        """Convert the pool's errors to errors of gymnasium and of the user's envs."""
        try:
            yield
        except ClosedError as error:
            raise ClosedEnvironmentError(str(error)) from error
        except SC2PoolError as error:
            self.state = AsyncState.DEFAULT
            self.late = False
            if not (self._users_errors and isinstance(error, UserCodeError)):
                raise
            for env, raised in self._pool.raised():
                logger.error(f"Received the following error from Worker-{env} - Shutting it down")
                logger.error(raised.evidence.traceback)
            logger.error("Raising the last exception back to the main process.")
            raise of_the_env(error) from RemoteTraceback(str(error))


def of_the_env(error: UserCodeError) -> Exception:
    """The original exception of the user's env if it could be pickled, else `error`."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return error
    for note in getattr(error, "__notes__", ()):
        cause.add_note(note)
    return cause
