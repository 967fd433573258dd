"""`SubprocSC2VecEnv`: the pool as a Stable-Baselines3 `VecEnv`.

The rules are SB3's (`stable_baselines3/common/vec_env/base_vec_env.py`). The step that ends an
episode resets the env. An info has `terminal_observation` if and only if its env is done.
`TimeLimit.truncated` is True only if the episode was cut short. A returned batch is never
overwritten. Keys that the pool adds to an info begin with `sc2pool.`.
"""

from __future__ import annotations

import logging
import operator
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, Unpack

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

from sc2pool.envs.shared_keywords import (
    EnvFns,
    PoolKeywords,
    check_keywords,
    check_start_method,
    make_players,
    whole_number,
)
from sc2pool.errors import ConfigError
from sc2pool.players.operations import qualified
from sc2pool.pool.batch import Batch
from sc2pool.pool.episodes import check_options
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.layout import Array
from sc2pool.pool.statistics import PoolStats
from sc2pool.pool.vec_pool import VecPool, masks_of
from sc2pool.processes.tree import usable_cores

log = logging.getLogger("sc2pool")


PoolT = TypeVar("PoolT", bound=VecPool)


class PoolVecEnv(VecEnv, Generic[PoolT]):
    """A `VecEnv` over a pool: the base class of `SubprocSC2VecEnv` and `RaySC2VecEnv`.

    Args:
        pool: The pool; if the constructor fails, it closes the pool.
        seed: The seed of the first reset, or None.
        is_task: True if the pool plays a task; False if it has envs of the user.

    Attributes: SB3's own attributes, and `pool`.
    """

    def __init__(self, pool: PoolT, seed: int | None, *, is_task: bool) -> None:
        self.pool = pool
        self._is_task = is_task
        self._advises = False
        self._seed_for_all = False
        try:
            super().__init__(pool.n_rows, pool.observation_space, pool.action_space)
            self.metadata = {**pool.metadata, **self.metadata}  # video recorders read render_fps
            if seed is not None:
                self.seed(seed)
        except BaseException:
            pool.close()
            raise

    def reset(self) -> VecEnvObs:
        """Begin an episode in every env, and drop a pending step.

        If several envs share a game, the game gets the options of the first of them.

        Returns:
            The observations in the structure and the dtypes of the space, with a first axis of
            length `num_envs`.

        Raises:
            CrashLoopError, UserCodeError, ObservationError: see their docstrings; every later call
                raises `ClosedError`.
        """
        seeds = self._seeds
        if self._is_task and seeds[0] is not None:
            # Without a user's seed, only games' first episodes are seeded, so that these differ.
            # Episodes without a seed can begin by `restart_game`, which is faster.
            self.pool.seed(seeds[0], seeded=None if self._seed_for_all else self.pool.n)
        self._advise()
        rows = self.pool.rows
        batch = self.pool.reset(seeds[::rows], self._options[::rows])
        self._reset_seeds()
        self._reset_options()
        self._take_reset_infos(batch)
        return batch.observations  # type: ignore[no-any-return]

    def step_async(self, actions: Any) -> None:
        """Send one action per env.

        Args:
            actions: An array or a list of length `num_envs`. If the action space is a Box, actions
                beyond its bounds are clipped.

        Raises:
            ActionError: an action is outside the space; nothing has been sent to any game.
        """
        self.pool.send(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step.

        Returns:
            A tuple: observations, as from `reset`; rewards, float64 (num_envs,); dones, bool
            (num_envs,); and infos, a list of `num_envs` dicts. If a game has failed, each of its
            envs is done, with `TimeLimit.truncated`, `sc2pool.synthetic` and `sc2pool.fault` (kind,
            phase, detail, instance, recovery_s) in its info.

        Raises:
            CrashLoopError, UserCodeError, ObservationError: see `reset`.
        """
        batch = self.pool.recv()
        dones = batch.terminated | batch.truncated
        for info in batch.infos:
            info["TimeLimit.truncated"] = False
        if np.count_nonzero(dones):  # `count_nonzero` is several times as fast as `any`
            self._take_reset_infos(batch)
            for env in np.flatnonzero(dones).tolist():
                info = batch.infos[env]
                info["TimeLimit.truncated"] = not batch.terminated[env]
                info["terminal_observation"] = batch.final_observations[env]
        return batch.observations, batch.rewards, dones, batch.infos

    def _take_reset_infos(self, batch: Batch) -> None:
        for env, info in enumerate(batch.reset_infos):
            if info is not None:
                self.reset_infos[env] = info

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the next reset; with None, the envs' first episodes still differ.

        The envs of `env_fns` get `seed`, `seed + 1`, …, as in SB3. For tasks, `seed` is the seed of
        the run: the game seed of the k-th episode that begins is derived from `seed` and k. All env
        classes derive the same game seeds. Seeds such as 7 and 8 share no episode.

        Returns:
            The seeds `seed + i` of each env i, as in SB3.

        Raises:
            ConfigError: the seed is not a whole number of at least 0.
        """
        self._seed_for_all = seed is not None
        self.pool.void_episodes()
        return super().seed(None if seed is None else whole_number("seed", seed, 0))

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Set the options of the next reset: one dict for all envs, or a list with a dict for each.

        Raises:
            ConfigError: an element is not a dict, or the list's length is not `num_envs`.
        """
        each = options if isinstance(options, list) else [{} if options is None else options]
        for one in each:
            check_options(one)
        if isinstance(options, list) and len(options) != self.num_envs:
            raise ConfigError(
                f"options must be one dict, or a list of one for each of the {self.num_envs} envs, "
                f"got {len(options)} of them"
            )
        super().set_options(options)
        self.pool.void_episodes()

    def pause(self, indices: VecEnvIndices = None) -> None:
        """Stop the games of these envs until their next step or reset, or until `resume`.

        No game loop should pass during a pause; `stats().pauses` counts the loops that passed
        anyway. A game that was paused k times needs k calls of `resume`.

        Raises:
            AlreadyPendingCallError: `step_wait` has not been called after `step_async`.
            PauseError: a game could not be stopped; all of these games continue.
        """
        self.pool.pause(None if indices is None else self._games(indices))

    def resume(self, indices: VecEnvIndices = None) -> None:
        """Let the games of these envs continue; without effect on games that are not paused."""
        self.pool.resume(None if indices is None else self._games(indices))

    def stats(self) -> PoolStats:
        """The pool's counters, and the state of each instance."""
        return self.pool.stats()

    def close(self) -> None:
        """End every worker and game within a time limit; may be called again."""
        self.pool.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Read the attribute's value in each of these envs.

        Args:
            attr_name: The attribute's name.
            indices: An index, several indices (negative ones count from the end), or None for all.

        Returns:
            A value per env, in the order of `indices`.

        Raises:
            AttributeError: an env has no such attribute.
            IndexError: an index is out of range.
            multiprocessing.TimeoutError: an env did not answer within `Limits.call_s`. This env
                continues with a new instance, and its next info contains the fault.
        """
        return self.pool.call(self._envs(indices), "get_attr", attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """True if every env has the attribute."""
        return all(self.pool.call(range(self.num_envs), "has_attr", attr_name))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set the attribute in each of these envs; it survives resets and replaced instances.

        Args:
            attr_name: The attribute's name.
            value: One value for all of these envs.
            indices: See `get_attr`.
        """
        self.pool.set_attr(self._envs(indices), attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method in each of these envs.

        A task's `action_masks` is not called, because the masks come with the newest observations.
        A mask is a bool array of shape (n,) for `Discrete(n)`, or (sum(nvec),) for
        `MultiDiscrete(nvec)`. The mask is all True if the env's task returned None.

        Args:
            method_name: The method's name.
            method_args: The positional arguments of the method.
            indices: See `get_attr`.
            method_kwargs: The keyword arguments of the method.

        Returns:
            The result of each env, in the order of `indices`.

        Raises:
            Exception: the method raised this exception; a `UserCodeError` if the exception could
                not be pickled. The envs continue.
            multiprocessing.TimeoutError: see `get_attr`.
        """
        envs = self._envs(indices)

        def call() -> list[Any]:
            return self.pool.call(envs, "env_method", method_name, method_args, method_kwargs)

        return list(masks_of(self.pool, envs, call)) if method_name == "action_masks" else call()

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """True for each of these envs that is wrapped in this class or in a subclass."""
        return self.pool.call(self._envs(indices), "is_wrapped", qualified(wrapper_class))

    def render(self, mode: str | None = None) -> Array | None:
        """The frames of all envs as one picture.

        Args:
            mode: The render mode; None for the env's own mode.

        Returns:
            uint8 (height, width, 3). None in the mode `"human"`, whose web page shows the games
            without this method. None, with a warning, if the env has no render mode.
        """
        if self._is_task and self.render_mode == "human" and mode in (None, "human"):
            return None
        return super().render(mode)

    def get_images(self) -> Sequence[Array | None]:
        """A frame of each env; None for each env, with a warning, if the mode is not rgb_array.

        Returns:
            uint8 (480, 640, 3) each, unless the task or the user's envs draw other frames.

        Raises:
            ResetNeeded: no episode of a task has begun.
        """
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"The render mode is {self.render_mode}, but this method assumes it is `rgb_array` "
                "to obtain images.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return self.pool.render(range(self.num_envs))

    def _advise(self) -> None:
        """Warn once, at the first reset, if the number of torch's threads slows the training."""
        advises, self._advises = self._advises, False
        if advises:
            import torch  # noqa: PLC0415 - if SB3 is missing, the error must name SB3, not torch

            advice = threads_advice(torch.get_num_threads(), self.pool.n, usable_cores())
            if advice is not None:
                _say_once(advice)

    def _envs(self, indices: VecEnvIndices) -> list[int]:
        """Convert SB3's indices (None for all, one index or several, also negative) to 0 … n-1."""
        every = range(self.num_envs)
        if indices is None:
            return list(every)
        try:
            many: list[int] = list(indices) if isinstance(indices, Iterable) else [indices]
            if bool not in map(type, many):  # bools are a mask, not indices
                return [every[operator.index(env)] for env in many]
            wrong: type[Exception] = TypeError
        except (IndexError, TypeError) as error:
            wrong = type(error)
        raise wrong(f"indices must be numbers of the {self.num_envs} envs, got {indices!r:.80}")

    def _games(self, indices: VecEnvIndices) -> list[int]:
        """The games in which these envs play, without duplicates."""
        return list(dict.fromkeys(env // self.pool.rows for env in self._envs(indices)))


_say_once = cache(log.warning)


def threads_advice(threads: int, games: int, cores: int) -> str | None:
    """Advice on the number of torch's threads; None if the number is good.

    With PPO's small network, eight games and two cores, two torch threads cost 25 % of the speed.
    """
    if threads == 1 or games < cores:
        return None
    return (
        f"torch computes with {threads} threads, and {games} games want the {cores} cores, too: "
        "with a small network torch.set_num_threads(1) makes the training faster"
    )


class SubprocSC2VecEnv(PoolVecEnv[Pool]):
    """n StarCraft II games, or n environments of the user, stepped as one batch.

    An env is a row of the batch. If a task has several learning players in one game, each player is
    an env. For example, "MarineDuel" has two players: `num_envs` is twice n, and envs 2i and 2i + 1
    are the two players of game i. Their episodes end together, and a fault of the game ends both.

        SubprocSC2VecEnv("MoveToBeacon", n=8)
        SubprocSC2VecEnv([make_env, make_env])

    Args:
        env_fns: Functions that make one gymnasium env each. A task or n may replace the functions.
        start_method: A name that is checked as in SB3's `SubprocVecEnv`, but has no effect, because
            every worker is a new interpreter.
        n: The number of games; 8 by default.
        num_envs: The number of envs of all games together; may be given in place of n.
        task: A built-in task's name, or a subclass of `Task` or `RLBotAI`; "MoveToBeacon" if
            neither a task nor `env_fns` is given.
        game: `"auto"` (SC2PATH, the platform's default place, else the bundled stand-in),
            `"real"` (never the stand-in), or the path of an installation.
        seed: A seed that makes the run repeatable, as a call `seed(seed)` before the first reset
            does.
        spares: How many additional games to keep ready, each at the beginning of an episode. An env
            then waits neither for a reset nor for the replacement of a failed game.
        render_mode: `"rgb_array"` for frames from `render()` and `get_images()`. `"human"` serves
            a web page that shows the games, and opens it in a browser if there is a display. None
            for the render mode that the task sets.
        config: The limits and policies of the pool.
        realtime: If True, the games run by themselves, 22.4 loops a second, and do not wait for
            actions. `step` waits until the game has run `step_mul` more loops.
        step_mul: The number of game loops per env step; None for the task's own number.
        max_loops: An episode is truncated after this many game loops; None for the task's number.
        opponent: The player of the other side in a task of two players. The opponent plays inside
            the worker, so each game has one row. The opponent is a function of the observation, an
            object with SB3's `predict`, the path of a model that SB3 has saved, a `SnapshotStore`,
            a `Computer`, or a bot of python-sc2 (its class, an object of it, or a `Bot`). The
            opponent is None if both sides learn.
        serial: True runs the tasks or envs in this process, for debugging; see `DummySC2VecEnv`.

    `game`, `spares`, `render_mode`, `realtime`, `step_mul`, `max_loops` and `opponent` are for
    tasks only.

    Attributes: SB3's, and `pool`, the pool itself.

    Raises:
        ConfigError: a wrong keyword or one without effect, an unknown task, no installation, a
            missing map, or spaces that differ.
        UserCodeError: a function of `env_fns` raised an exception.
        ValueError: `start_method` is unknown.
    """

    _serial = False

    def __init__(
        self,
        env_fns: EnvFns = None,
        start_method: str | None = None,
        **games: Unpack[PoolKeywords],
    ) -> None:
        check_keywords(type(self).__name__, games, PoolKeywords)
        games.setdefault("serial", self._serial)
        check_start_method("start_method", start_method)
        self._players = players = make_players(env_fns, **games)
        super().__init__(players.make_pool(), players.seed, is_task=players.is_task)
        self._advises = players.is_task

    def __repr__(self) -> str:
        return self._players.describe(self, self.pool)

    def send(self, actions: Any, games: Iterable[int] | None = None) -> None:
        """Send actions to some games, or to all; `recv` returns their transitions.

        `step` is a `send` to all games, then a `recv` from all games. If the learner can use the
        transitions of any games, call `send` and `recv`: `recv` returns those that are ready first.

        Args:
            actions: One action for each env of these games, in the order of the games.
            games: The indices of the games, 0 to n - 1; None for all. A game is one env, unless
                several learners share the game.

        Raises:
            ActionError: an action is outside its space, or there are too many or too few actions.
            AlreadyPendingCallError: a game's previous transition has not been received.
            ConfigError: an index does not exist or is named twice.
            ResetNeeded: no episode has begun.
        """
        self.pool.send(actions, games)

    def recv(self, min_ready: int | None = None, timeout_s: float | None = None) -> Batch:
        """Wait for the transitions of games that have got actions; return all that are ready.

        A game whose episode is over is ready with the first observation of its next episode.

        Args:
            min_ready: The number of games to wait for; None for all games that are pending.
            timeout_s: None for no limit. After a timeout the batch has fewer games, perhaps none.

        Returns:
            The transitions. `Batch.envs` has the indices of the games.

        Raises:
            NoAsyncCallError: nothing is pending.
        """
        return self.pool.recv(min_ready, timeout_s)


class DummySC2VecEnv(SubprocSC2VecEnv):
    """`SubprocSC2VecEnv` without workers, for debugging, like SB3's `DummyVecEnv`.

    The games are processes of their own. But tasks, bots and envs of `env_fns` run in this process,
    inside `step` and `reset`, one at a time, so `breakpoint()`, `print` and a profiler work in
    them. Their exceptions are raised unchanged, with a traceback from the script's line to the line
    that failed; the next `reset` begins a new episode. Episodes, seeds and observations are those
    of `SubprocSC2VecEnv`. The trainer's deadlines and the memory limits are off.

    The arguments are those of `SubprocSC2VecEnv`; `render_mode="human"` needs workers.
    """

    _serial = True
