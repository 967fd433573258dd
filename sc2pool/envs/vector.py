"""`SC2VectorEnv`: the pool as a gymnasium `VectorEnv`.

Rules are gymnasium's, as its `AsyncVectorEnv` keeps them: the next step resets an env that is over
(NEXT_STEP), or the same one does (SAME_STEP), or the trainer (DISABLED); infos are a dict of arrays
with `_key` masks; misuse is one of `gymnasium.error`. Where that class is careless, this one is
not: a batch that was returned is never written again, an answer that comes after a timeout is never
taken for that to a later step, and nothing is sent unless all of it can be.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import logger
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import EnvFn, check_seed, check_spares, player_specs
from sc2pool.envs.vector_arguments import Seeds, check_concurrency, seed_of_each, split_mask
from sc2pool.envs.vector_calls import EnvCalls
from sc2pool.envs.vector_pending import Pending, of_the_env
from sc2pool.envs.vector_spaces import ObservationMode, VectorSpaces
from sc2pool.errors import ConfigError, UserCodeError
from sc2pool.pool import actions as action_checks
from sc2pool.pool.batch import Batch
from sc2pool.pool.episodes import Request
from sc2pool.pool.ipc.layout import Array, space_layout
from sc2pool.pool.ipc.remote_errors import RemoteTraceback
from sc2pool.pool.pool import Pool
from sc2pool.pool.report.stats import PoolStats
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.registry import resolve

Step = tuple[Any, Array, Array, Array, dict[str, Any]]

_MARKS = ("sc2pool.synthetic", "sc2pool.fault")


class SC2VectorEnv(EnvCalls):
    """n StarCraft II games, or n environments of the user, stepped as one batch.

        SC2VectorEnv(n=8, task="MoveToBeacon")
        SC2VectorEnv([make_env, make_env])

    Args:
        env_fns: functions that make a gymnasium env each, in place of a task.
        shared_memory: as in `AsyncVectorEnv`: False allows spaces that are not gymnasium's own.
        copy: without effect: a batch that was returned is never written again.
        context: a start method; checked, then without effect, because workers are always fresh
            interpreters.
        daemon: without effect: workers end with the trainer, and may have children.
        worker: must be None, for the workers are the pool's own.
        observation_mode: "same", "different", or (batched space, single space).
        autoreset_mode: an `AutoresetMode`, or its value.
        max_concurrency: how many of the user's envs may step or reset at one time; None for all.
        n: number of envs, each a game of its own.
        task: a built-in task's name, or a subclass of `Task` or `RLBotAI`.
        game: see `SubprocSC2VecEnv`.
        seed: the same as `reset(seed=seed)` at the first reset.
        spares: how many more games to keep reset; tasks only.
        render_mode: as for `gymnasium.make`: "rgb_array", so that `render` draws; tasks only.
        realtime: the games run by themselves; see `SubprocSC2VecEnv`.
        config: limits and policies.

    Attributes: `num_envs`, `single_observation_space`, `single_action_space`, `observation_space`,
    `action_space` (batched), `render_mode`, `closed`, and `metadata["autoreset_mode"]`; `realtime`,
    and the task's `step_mul`, None for `env_fns`.

    Raises:
        ConfigError: unknown task, no installation, no such map, a wrong `n`.
        RuntimeError: spaces that differ.
        ValueError: unknown mode or start method.
        Exception: what a function of `env_fns` raised.
    """

    def __init__(  # noqa: PLR0917 - these are AsyncVectorEnv's, in its order
        self,
        env_fns: Sequence[EnvFn] | None = None,
        shared_memory: bool = True,
        copy: bool = True,  # noqa: ARG002
        context: str | None = None,
        daemon: bool = True,  # noqa: ARG002
        worker: Callable[..., None] | None = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        n: int = 8,
        task: str | type[TaskDefinition] | None = None,
        game: str | os.PathLike[str] = "auto",
        seed: int | None = None,
        spares: int = 0,
        render_mode: str | None = None,
        realtime: bool = False,
        config: PoolConfig | None = None,
    ) -> None:
        if worker is not None:
            raise ConfigError(f"worker must be None, for the pool has its own, got {worker!r}")
        multiprocessing.get_context(context)  # ValueError: cannot find context
        at_once = check_concurrency(max_concurrency)
        if task is not None and at_once is not None:
            raise ConfigError("max_concurrency is for env_fns; with a task it must be None")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._first_seed = None if seed is None else check_seed(seed)
        spaces = VectorSpaces(observation_mode, shared_memory)
        config = config or PoolConfig()
        specs = player_specs(
            env_fns,
            task,
            n=n,
            game=game,
            spares=spares,
            render_mode=render_mode,
            config=config,
            realtime=realtime,
        )
        self._is_task = task is not None
        try:
            self.pool = Pool(
                specs,
                one_book=self._is_task,
                config=config,
                spares=check_spares(spares),
                autoreset=self.autoreset_mode is AutoresetMode.SAME_STEP,
                max_concurrency=at_once,
                agree=spaces.agree,
            )
        except UserCodeError as error:
            raise of_the_env(error) from RemoteTraceback(str(error))
        self.num_envs = self.pool.n
        self.single_observation_space = spaces.single_observation_space
        self.single_action_space = spaces.single_action_space
        self.observation_space = spaces.observation_space
        self.action_space = spaces.action_space
        self.metadata = {**self.pool.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self.pool.render_mode
        self.realtime = realtime
        self.step_mul = None if task is None else resolve(task).step_mul
        self._one_array = isinstance(self.single_action_space, action_checks.ARRAY_SPACES)
        self._gathered = space_layout(self.pool.observation_space, 0).fixed
        self._pending = Pending(self.pool, users_errors=not self._is_task)
        self._limited = at_once is not None

    # Resets.

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every env, or in those of `options["reset_mask"]`.

        Args:
            seed: env i gets `seed + i`; or a list of a seed, or None, for each. For tasks it
                repeats this and all later episodes exactly; env i's first is that of
                `SC2GymEnv.reset(seed=seed + i)`.
            options: for each env's own `reset`; `reset_mask`, bool (n,), is taken out of them.

        Returns:
            Observations, batched, the newest of each env (those left out by the mask show the one
            they had), and the infos of the resets.

        Raises:
            AlreadyPendingCallError, ClosedEnvironmentError: misuse.
            ResetNeeded: the first reset has a mask that leaves envs out.
            TypeError, ValueError: not a mask, not a seed, not as many as envs.
            CrashLoopError, UserCodeError, ObservationError: as told by their docstrings; the pool
                is closed for good then. What an env of the user raised is raised as it is.
        """
        self.reset_async(seed=seed, options=options)
        return self.reset_wait()

    def reset_async(self, seed: Seeds = None, options: dict[str, Any] | None = None) -> None:
        """Begin what `reset` does."""
        self._pending.check_idle("reset_async")
        seeds = seed_of_each(seed, self.num_envs)
        envs, others = split_mask(options, self.num_envs)
        if not self.pool.began:
            if len(envs) < self.num_envs:
                raise ResetNeeded("the first reset must be one of all envs: give no reset_mask")
            if seed is None:
                seeds = seed_of_each(self._first_seed, self.num_envs)
        given = [one for one in (seeds[env] for env in envs) if one is not None]

        requests: list[Request] | None
        requests = [Request(seeds[env], others, both_keywords=True) for env in envs]
        with self._pending.gymnasiums_errors():
            if self._is_task and given:
                self.pool.seed(given)
            elif self._is_task and not others:
                requests = None  # the next episodes, which spares may hold
            self.pool.begin(envs, requests)
        self._pending.state = AsyncState.WAITING_RESET

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Wait for the reset, at most `timeout` seconds; see `reset`.

        Raises:
            multiprocessing.TimeoutError: it may be waited for again; any other call drops it.
            NoAsyncCallError: none was begun.
        """
        batch = self._pending.receive(AsyncState.WAITING_RESET, timeout)
        observations = batch.observations
        if len(batch.envs) < self.num_envs:
            observations = self.pool.newest_observations()
        return self._batched(observations), self._infos_of(batch)

    # Steps.

    def step(self, actions: Any) -> Step:
        """Play one step in every env.

        Args:
            actions: an element of `action_space`, or a list of n of `single_action_space`.

        Returns:
            observations, batched; rewards, float64 (n,); terminations and truncations, bool (n,);
            infos, a dict of arrays (n,) with masks. NEXT_STEP: where the env was over, this is its
            reset, the action counts for nothing, and the reward is 0. SAME_STEP: where it is over,
            `final_obs` and `final_info` are the episode's last, all else is the new one's. A game
            that failed shows as truncated, with `sc2pool.synthetic` and `sc2pool.fault`.

        Raises:
            ValueError: not n actions, or one outside a task's space; nothing was sent.
            TypeError: not a batch at all.
            ResetNeeded: no episode has begun; DISABLED: an env is over.
            Otherwise: see `reset`.
        """
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Send one action to each env."""
        self._pending.check_idle("step_async")
        if not self.pool.began:
            if self._is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()  # gymnasium lets envs be stepped that it has not reset
        over = self.pool.over
        if over and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"the episodes of envs {over} are over: reset them, with options['reset_mask']"
            )
        one_each = self._one_each(actions)
        if self._limited:
            one_each = deepcopy(one_each)  # it may change before the last is sent
        with self._pending.gymnasiums_errors():
            if not over:
                self.pool.send(one_each)
            else:
                playing = [env for env in range(self.num_envs) if env not in over]
                if playing:
                    self.pool.send([one_each[env] for env in playing], playing)
                self.pool.begin(over)
        self._pending.state = AsyncState.WAITING_STEP

    def step_wait(self, timeout: float | None = None) -> Step:
        """Wait for the step, at most `timeout` seconds; see `step`.

        Raises:
            multiprocessing.TimeoutError: it may be waited for again; any other call drops it.
            NoAsyncCallError: none was begun.
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
        """The actions by env, none of them sent yet."""
        if not (self._one_array and isinstance(actions, np.ndarray) and actions.ndim):
            actions = list(iterate(self.action_space, actions))
        action_checks.count(actions, self.num_envs)
        return actions

    def _batched(self, observations: Any) -> Any:
        """Observations as `observation_space` has them."""
        if self._gathered:
            return observations
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, observations, empty)

    def _infos_of(self, batch: Batch) -> dict[str, Any]:
        """One dict of arrays out of a dict per env."""
        infos: dict[str, Any] = {}
        for row, (info, reset_info) in enumerate(zip(batch.infos, batch.reset_infos, strict=True)):
            told = info if reset_info is None else reset_info
            if reset_info is not None and (batch.terminated[row] or batch.truncated[row]):
                told = {
                    "final_info": info,
                    "final_obs": batch.final_observations[row],
                    **reset_info,
                    **{mark: info[mark] for mark in _MARKS if mark in info},
                }
            if told:
                infos = self._add_info(infos, told, int(batch.envs[row]))
        return infos

    # Everything beside the step path.

    def pause(self) -> None:
        """Stop the games, each until its next step or reset, or `resume`.

        See `SubprocSC2VecEnv.pause`. An env that is over has none to stop: it waits for its reset.

        Raises:
            AlreadyPendingCallError, ClosedEnvironmentError: misuse.
            PauseError: a game could not be stopped; all go on.
        """
        self._pending.check_idle("pause")
        with self._pending.gymnasiums_errors():
            self.pool.pause()

    def resume(self) -> None:
        """Let the games go on; without effect on those that are not paused."""
        self._pending.check_idle("resume")
        with self._pending.gymnasiums_errors():
            self.pool.resume()

    def stats(self) -> PoolStats:
        """The pool's counters, and what each instance is doing."""
        return self.pool.stats()

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End every worker and game; bounded.

        Args:
            timeout: seconds that envs of the user get to close by themselves; None for 2.
            terminate: give them none.
        """
        state = self._pending.state
        if state is not AsyncState.DEFAULT and not self._pending.late:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{state.value}` to complete."
            )
        self.pool.close(0.0 if terminate else timeout)
