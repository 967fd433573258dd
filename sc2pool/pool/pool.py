"""A pool that steps n envs together; the classes in `sc2pool.envs` adapt it to each library.

The methods `send` and `begin` give work to the envs' instances. The method `recv` waits, begins the
next episodes and gathers the replies. The method `reset` begins an episode in all envs and waits.

`Pool` checks its arguments and delegates to modules. `stepping` tracks each env's step, `episodes`
chooses each env's next episode, and `instances` keeps the games alive. `calls` pauses games, and
runs operations in the players' processes. For each action an env gives exactly one transition.
After a fault the transition is marked as synthetic. After an interrupt (Ctrl-C) in any call, the
next reset of all envs gives a working pool. Only the process that made a pool may use it.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.pool.batch import Batch, check_actions, check_count, is_batch_of
from sc2pool.pool.calls import Calls, Pauses
from sc2pool.pool.episodes import Episodes, Request
from sc2pool.pool.instances.system import REAL, System
from sc2pool.pool.messages import Hello, Raised
from sc2pool.pool.queues.layout import Array, slot_layout
from sc2pool.pool.runtime import Lifetime, Runtime
from sc2pool.pool.statistics import PoolStats
from sc2pool.pool.stepping import Stepping
from sc2pool.pool.vec_pool import agreed, refuse_to_travel
from sc2pool.pool.watchdog import memory_warning
from sc2pool.tasks.player import PlayerSpec

log = logging.getLogger(__name__)
_POOLS_IN_A_POOL = (
    "each of these %d envs is an SC2GymEnv, with a pool of its own: one pool of %d games plays "
    "three times as fast in a quarter of the memory. Write task=… and n=… in place of functions "
    "that make envs, and VecMonitor in place of make_vec_env's monitors"
)


class Pool:
    """Owns n envs and their spares, and steps them together.

    An env may have several rows: its learning players, or the agents of a team. Actions and batches
    have the rows of env 0, then the rows of env 1, and so on. With two rows per env, rows 2i and 2i
    + 1 belong to env i. The rows of an env are sent and received together.

    Args:
        specs: a player for each env.
        one_book: whether all envs share one numbered sequence of episodes (for a task), or each env
            counts its own episodes (for environments of the user).
        config: the limits and policies of the pool.
        spares: how many further instances to keep ready for the next episodes of a task.
        autoreset: whether an env whose episode is over begins its next episode in the same step.
        max_concurrency: how many envs may step or begin an episode at the same time (None: all).
        agree: a function that gets the players' `Hello` messages in the order of the envs, and
            returns the message whose spaces the pool uses; it raises an error if the messages do
            not fit together.
        task: the task's name for the statistics, or None for envs of the user.
        settled: facts found out about the game, which `PoolStats.settled` shows.
        system: the object that creates the operating system resources.

    Attributes:
        n: how many envs there are.
        rows: how many rows each env has.
        n_rows: how many rows there are in all.
        observation_space: the space of one row's observation.
        action_space: the space of one row's action.

    Raises:
        ConfigError: the players do not agree on their spaces, a game cannot be started, the
            metrics cannot be served, the interpreter is ending, or the limit of open files is too
            low for this many instances.
    """

    __reduce__ = refuse_to_travel

    def __init__(
        self,
        specs: Sequence[PlayerSpec],
        *,
        one_book: bool,
        config: PoolConfig,
        spares: int = 0,
        autoreset: bool = True,
        max_concurrency: int | None = None,
        agree: Callable[[Sequence[Hello]], Hello] = agreed,
        task: str | None = None,
        settled: Mapping[str, Any] | None = None,
        system: System = REAL,
    ) -> None:
        self.n = len(specs)
        self._every = range(self.n)
        self._is_task = one_book
        self._has_spares = spares > 0
        self._lifetime = lifetime = Lifetime()
        if sys.is_finalizing():
            raise ConfigError("no games can be started any more: the interpreter is ending")
        if config.replays is not None and not one_book:
            raise ConfigError("replays are of games: envs of env_fns have none to keep")
        system.require_descriptors(self.n + spares, config.envs_per_worker or 1)
        packed = [_packed(system, spec, env) for env, spec in enumerate(specs)]
        try:
            runtime = lifetime.open(self, lambda: Runtime(packed, spares, config, system))
            self._runtime = runtime
            loop = runtime.loop
            self._bookkeeping = loop.bookkeeping
            self._supervisor = loop.supervisor
            self._supervisor.stats.task = task
            self._supervisor.stats.settled = settled or {}
            self._episodes = Episodes(self._supervisor, one_book=one_book)
            self._pauses = Pauses(loop)
            runtime.serve_metrics()
            first = agree(loop.wait_for_hellos())
            if first.is_a_pool and self.n > 1:
                log.warning(_POOLS_IN_A_POOL, self.n, self.n)
            layout = slot_layout(first.observation_space, first.action_space, first.rows)
            loop.fit_slots(layout)
            self.rows = first.rows
            self.n_rows = self.n * self.rows
            self._every_row = range(self.n_rows)
            self.observation_space: spaces.Space[Any] = first.observation_space
            self.action_space: spaces.Space[Any] = first.action_space
            self.metadata: Mapping[str, Any] = first.metadata
            self.render_mode = first.render_mode
            if one_book and self.render_mode == "human":
                runtime.open_watch_page()
            self.strict = first.strict
            self._stepping = Stepping(
                loop,
                self._episodes,
                layout,
                autoreset=autoreset,
                realtime=first.realtime,
                max_concurrency=max_concurrency,
            )
            self._supervisor.listener = self._stepping
            self._bookkeeping.bring_up_to_date = self._stepping.note_plain_steps
            self._calls = Calls(loop, self._stepping, self._pauses, self.rows, config.limits.call_s)
            actions = layout.action
            self._action_leaf = actions.leaves[0] if actions.is_array and actions.leaves else None
            if warning := memory_warning(
                runtime.fleet.first_games_bytes(), self.n + spares, system.available_bytes()
            ):
                warnings.warn(warning, stacklevel=3)
        except BaseException:
            with suppress(Exception):  # an env's own `close` may raise
                self.close()
            raise

    # Episodes.

    def seed(self, seed: int | Sequence[int] | None, seeded: int | None = None) -> None:
        """Begin a new sequence of episodes, from episode 0; see `EpisodeBook.begin`."""
        self._mend()
        with self._bookkeeping:
            self._episodes.seed(seed, seeded)

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
    ) -> Batch:
        """Begin an episode in every env, even if a step is pending; return first observations.

        Games in real time begin together. Each game is held (stopped) at its first observation
        until all games have reached theirs, because some games may have to be launched first.

        Args:
            seeds: a seed for each env of the user; tasks ignore `seeds`, because the method `seed`
                sets their seeds.
            options: a mapping of reset options for each env.
        """
        self.drop()
        requests = [
            Request(
                None if seeds is None or self._is_task else seeds[env],
                {} if options is None else options[env],
            )
            for env in self._every
        ]
        with self._bookkeeping:
            self._begin(self._every, requests)
            return self._stepping.recv(None, None)

    @property
    def pending(self) -> int:
        """The number of envs with a pending transition; after an interrupt it is 0 until `drop`."""
        return 0 if self._bookkeeping.torn else self._stepping.pending

    def drop(self) -> None:
        """Wait for all pending steps and drop their results, so that every env may be reset."""
        self._bookkeeping.check_open()
        self._mend()
        if self._stepping.pending:
            with self._bookkeeping:
                self._stepping.drop()

    def _mend(self) -> None:
        """If an interrupt has left the records half updated, replace every instance."""
        if not self._bookkeeping.torn:
            return
        self._bookkeeping.check_open()
        log.warning("a call of the pool was interrupted: every game is replaced")
        self._episodes.forget()
        self._pauses.forget()
        self._stepping.forget()
        self._runtime.start_anew()

    def begin(
        self, envs: Iterable[int] | None = None, requests: Sequence[Request] | None = None
    ) -> None:
        """Begin an episode in each of these envs; `recv` returns the first observations.

        In the batch from `recv`, these envs' rows have reward 0, no end flags, and a reset info.

        Args:
            envs: the indices of the envs, ascending, or None for all envs.
            requests: a request for each of these envs, in the order of `envs`, or None to begin the
                envs' next episodes, as an autoreset does.

        Raises:
            AlreadyPendingCallError: an env has a transition that `recv` has not returned yet.
            InterruptedCallError: an interrupt has cut an earlier call short; call `drop` first.
        """
        self._bookkeeping.check_usable()
        numbers = self._chosen(envs)
        self._stepping.require_at_rest(numbers, "reset", "the next one")
        with self._bookkeeping:
            self._begin(numbers, requests)

    def _begin(self, envs: Sequence[int], requests: Sequence[Request] | None) -> None:
        self._pauses.end(envs)
        self._stepping.begin(envs, requests)

    def _chosen(self, envs: Iterable[int] | None) -> Sequence[int]:
        """The indices of these envs, checked; all indices for None."""
        if envs is None:
            return self._every
        chosen = [index(env) for env in envs]
        wrong = next((env for env in chosen if not 0 <= env < self.n), None)
        if wrong is not None:
            raise ConfigError(f"the pool's envs are 0 to {self.n - 1}, there is no {wrong}")
        if len(set(chosen)) < len(chosen):
            raise ConfigError(f"one of the envs {chosen} is named twice")
        return chosen

    # Steps.

    def send(self, actions: Any, envs: Iterable[int] | None = None) -> None:
        """Send one action to each row of these envs; `recv` returns their transitions.

        Args:
            actions: one action for each row of these envs, in the order of the envs.
            envs: the indices of the envs, or None for all envs.

        Raises:
            ActionError: an action is outside its space, or the number of actions is wrong.
            ConfigError: an index in `envs` does not exist or is given twice.
            AlreadyPendingCallError: an env's previous step has not been received.
            ResetNeeded: no episode of the task has begun, or the last episode is over.
        """
        self._bookkeeping.check_usable()
        may_be_plain = envs is None and self._stepping.arrange_plain()
        numbers = self._every if envs is None else self._chosen(envs)
        rows = self._every_row if envs is None else self.rows_of(numbers)
        if not may_be_plain:
            self._require_episodes(numbers)
        each = "env" if self.rows == 1 else "row"
        if self.strict:
            actions = check_actions(self.action_space, actions, rows, each)
        else:
            check_count(actions, len(rows), each)
        leaf = self._action_leaf
        fits = leaf is not None and (self.strict or is_batch_of(leaf, actions, len(rows)))
        if may_be_plain and fits:
            try:
                self._stepping.send_plain(actions)
            except Exception:
                self._bookkeeping.check_closed_meanwhile()
                raise
        else:
            with self._bookkeeping:
                self._pauses.end(numbers)
                # Copy the actions: the trainer may overwrite its array before they are sent.
                # A fault report may also list the actions later.
                actions = actions.copy() if isinstance(actions, np.ndarray) else deepcopy(actions)
                if self.rows > 1:
                    starts = range(0, len(actions), self.rows)
                    actions = [actions[start : start + self.rows] for start in starts]
                self._stepping.send(numbers, actions)
        if self._has_spares and self._episodes.spares.are_wanting:
            with self._bookkeeping:
                self._episodes.spares.prepare()

    def _require_episodes(self, envs: Sequence[int]) -> None:
        """Check that an episode runs in each env; reset envs of the user that were never reset."""
        self._stepping.require_at_rest(envs, "step", "the next one")
        if not self._stepping.began:
            if self._is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()  # SB3 allows a step before the first reset, and its users rely on that
        over = set(self._stepping.over).intersection(envs)
        if over:
            raise ResetNeeded(f"the episodes of envs {sorted(over)} are over: reset them first")

    def recv(self, min_ready: int | None = None, timeout_s: float | None = None) -> Batch:
        """Wait until `min_ready` pending envs are ready; return the transitions of all ready envs.

        With autoreset, an env whose episode is over is ready when the first observation of its
        next episode has arrived.

        Args:
            min_ready: how many envs to wait for, or None for all pending envs.
            timeout_s: the limit of the wait in seconds, or None for only the deadlines of the
                instances; after a timeout the batch has fewer than `min_ready` envs, maybe none.

        Raises:
            NoAsyncCallError: no step and no reset is pending.
        """
        self._bookkeeping.check_usable()
        if min_ready is None and timeout_s is None:
            try:
                batch = self._stepping.recv_plain()
            except Exception:
                self._bookkeeping.check_closed_meanwhile()
                raise
            if batch is not None:
                return batch
        with self._bookkeeping:
            self._bookkeeping.check_open()  # if another thread has closed the pool, no step is left
            return self._stepping.recv(min_ready, timeout_s)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until all pending envs are ready or the time is up; `recv` still returns the batch.

        Returns:
            True if all pending envs are ready.
        """
        self._bookkeeping.check_usable()
        with self._bookkeeping:
            self._bookkeeping.check_open()
            return self._stepping.wait(None, Deadline.after(timeout_s)) == self._stepping.pending

    @property
    def over(self) -> list[int]:
        """The envs whose episode is over and that wait for `begin`."""
        return self._stepping.over

    @property
    def began(self) -> bool:
        """True if an episode has begun in every env."""
        return self._stepping.began

    # Pauses.

    def pause(self, envs: Iterable[int] | None = None) -> None:
        """Stop the games of these envs: no game loop passes until the games continue.

        If an env plays a task, its games are stopped. If an env belongs to the user, all processes
        below its worker are stopped. The stopped processes continue with the env's next step or
        reset, or after as many resumes as pauses.

        Args:
            envs: the indices of the envs, or None for all envs and the spares. If a spare is being
                reset, `pause` waits for the end of the reset. A ready spare stays paused until an
                env takes it. In real time all spares are stopped anyway, from the first observation
                on.

        Raises:
            AlreadyPendingCallError: an env has a step whose result `recv` has not returned.
            PauseError: a game could not be stopped, so all games of these envs continue.
        """
        self._bookkeeping.check_usable()
        numbers = self._chosen(envs)
        self._stepping.require_at_rest(numbers, "pause", "you pause them")
        with self._bookkeeping:
            self._pauses.pause(numbers, spares=envs is None)

    def resume(self, envs: Iterable[int] | None = None) -> None:
        """Undo one `pause`; a game continues when all its pauses are undone.

        Args:
            envs: the indices of the envs, or None for all envs and the spares.
        """
        self._bookkeeping.check_usable()
        numbers = self._chosen(envs)
        with self._bookkeeping:
            self._pauses.resume(numbers, spares=envs is None)

    # No step calls the methods below.

    def rows_of(self, envs: Sequence[int]) -> list[int]:
        """The rows of these envs, in their order."""
        return [row for env in envs for row in range(env * self.rows, (env + 1) * self.rows)]

    def row(self, batch: Batch, row: int) -> Any:
        """A copy of one row's observation in a batch."""
        return self._stepping.gatherer.row(batch, row)

    def newest_observations(self) -> Any:
        """The newest observation of every row, in the structure of a batch of all rows."""
        return self._stepping.newest_observations()

    def action_mask(self, row: int) -> Array | None:
        """The action mask that came with the row's newest observation; None without a mask."""
        return self._stepping.action_mask(*divmod(row, self.rows))

    def call(
        self, rows: Sequence[int], operation: str, *arguments: Any, timeout_s: float | None = None
    ) -> list[Any]:
        """Run an operation of `sc2pool.players.operations` on these rows' targets (tasks or envs).

        Paused games continue while a method of an env runs (`env_method`), because the method may
        query its game.

        Raises:
            multiprocessing.TimeoutError: a target did not answer within `timeout_s` or
                `Limits.call_s`, and a later answer is dropped. After `Limits.call_s` the target's
                instance is also replaced, and the env's next transition reports the fault.
        """
        self._bookkeeping.check_usable()
        return self._calls.call(rows, operation, *arguments, timeout_s=timeout_s)

    def render(self, rows: Sequence[int]) -> list[Any]:
        """A frame of each of these rows, drawn by its task.

        If a task's game has died since its last step, the row's previous frame is returned again.
        If there is no previous frame, a black frame is returned.

        Raises:
            ResetNeeded: no episode of the task has begun.
        """
        if self._is_task and not self._stepping.began:
            raise ResetNeeded("call reset() before render()")
        self._bookkeeping.check_usable()
        return self._calls.render(rows, is_task=self._is_task)

    def set_attr(self, rows: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute of these rows' tasks or envs, in the present and all later instances."""
        self._bookkeeping.check_usable()
        self._calls.set_attr(rows, name, value)
        with self._bookkeeping:
            self._episodes.spares.take_back()
            if self._stepping.began:
                self._episodes.spares.prepare()

    def void_episodes(self) -> None:
        """Take back the episodes that were begun in advance; they begin again later."""
        self._mend()
        with self._bookkeeping:
            self._episodes.take_back()

    def stats(self) -> PoolStats:
        """The pool's counters and the state of each instance; may be called from any thread."""
        return self._runtime.stats()

    def show_figures(self, figures: Mapping[str, float]) -> None:
        """Set figures of the training, which `sc2pool watch` shows beside the pool's figures.

        Args:
            figures: a dict from names to the newest values; all earlier figures are dropped.
        """
        # Convert the figures here, so that a bad value raises an error in the caller's thread.
        self._supervisor.stats.learner = {
            str(name): float(value) for name, value in figures.items()
        }

    @property
    def run_dir(self) -> Path:
        """The run's folder, for the commands `sc2pool top --run` and `sc2pool watch --run`."""
        return self._runtime.fleet.run

    def raised(self) -> list[tuple[int, Raised]]:
        """The errors of the user's code that ended the pool, each with the index of its env."""
        return [(seat.index, raised) for seat, raised in self._supervisor.raised]

    @property
    def game_version(self) -> str | None:
        """The version that the games report (the stand-in's is "standin…"); None without games."""
        game = self._supervisor.stats.newest_game
        return None if game is None else game.version

    def __repr__(self) -> str:
        return (
            f"Pool(n={self.n}, spares={len(self._supervisor.spare_seats)}, "
            f"game_version={self.game_version!r}, closed={self.closed})"
        )

    @property
    def closed(self) -> bool:
        return self._lifetime.closed

    def close(self, grace_s: float | None = None) -> None:
        """End every process of the pool within a limit; may be called again.

        If a call of the pool waits in another thread, that call raises `ClosedError`.

        Args:
            grace_s: how long envs of the user may take to close by themselves (None: 2 s).
        """
        self._lifetime.close(ask_first=not self._is_task, grace_s=grace_s)


def _packed(system: System, spec: PlayerSpec, env: int) -> Any:
    """An env's spec, packed for its worker; if it cannot be pickled, the error names the env."""
    try:
        return system.packed(spec)
    except Exception as error:
        error.add_note(f"it cannot be pickled for env {env}")
        raise
