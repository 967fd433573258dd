"""The pool: n seats stepped together. The faces in `sc2pool.envs` are thin coats over it.

    send(actions) ─► every env's instance steps ─► recv(): wait for the replies, deal the next
                     episodes to the envs that are over, wait for their first observations, gather

It checks what it is given and hands it on: `transitions` awaits, `dealer` begins episodes, `pauses`
stops games, `calls` asks them, `supervisor` keeps them alive. Rule: every env that was sent an
action gets exactly one transition, a real one or, after a fault, a synthetic one that is marked.
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import NoAsyncCallError, ResetNeeded

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import ClosedError, ConfigError
from sc2pool.pool import actions as action_checks
from sc2pool.pool.agreement import agreed
from sc2pool.pool.batch import Batch, Gatherer, Outcome
from sc2pool.pool.calls import Calls
from sc2pool.pool.episodes import Episodes
from sc2pool.pool.in_step import InStep
from sc2pool.pool.instances.descriptors import require_descriptors
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.watchdog import available_bytes, memory_warning
from sc2pool.pool.ipc.layout import Array, space_layout
from sc2pool.pool.ipc.messages import Hello
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.ipc.slot import MASKED
from sc2pool.pool.pauses import Pauses
from sc2pool.pool.report.stats import PoolStats
from sc2pool.pool.transitions import Transitions, bind
from sc2pool.render import FRAME_SHAPE
from sc2pool.tasks.player import PlayerSpec


class Pool:
    """Owns n seats and their spares, and steps them together.

    Args:
        specs: a player for each env.
        one_book: whether episodes come from one book for all envs (tasks), or each env goes on
            by itself (environments of the user).
        config: limits and policies.
        spares: how many more instances to keep reset, holding the next episodes; tasks only.
        autoreset: whether an env that is over goes on to its next episode in the same step.
        agree: what the players say of their spaces, in the order of the envs, to what the pool
            takes them to be; raises where they do not fit together.

    Raises:
        ConfigError: the players do not agree on their spaces, a game cannot be started, the
            metrics cannot be served, or not as many files may be open as that needs.
    """

    def __init__(
        self,
        specs: Sequence[PlayerSpec],
        *,
        one_book: bool,
        config: PoolConfig,
        spares: int = 0,
        autoreset: bool = True,
        agree: Callable[[Sequence[Hello | None]], Hello] = agreed,
    ) -> None:
        self.n = len(specs)
        self._numbers = range(self.n)
        self._agree = agree
        self._is_task = one_book
        self._autoreset = autoreset
        self._began = False
        self._frames: dict[int, Any] = {}
        self._finalizer: weakref.finalize[..., Pool] | None = None
        if config.replays is not None and not one_book:
            raise ConfigError("replays are of games: envs of env_fns have none to keep")
        require_descriptors(self.n + spares)
        self._supervisor = supervisor = EventLoop([for_worker(s) for s in specs], spares, config)
        try:
            self._finalizer = weakref.finalize(self, supervisor.close, ask_first=False)
            self._dealer = Episodes(supervisor, one_book=one_book)
            self._calls = Calls(supervisor)
            self._pauses = Pauses(supervisor)
            supervisor.serve_metrics()
            self._learn_spaces()
        except BaseException:
            self.close()
            raise

    def _learn_spaces(self) -> None:
        seats = self._supervisor.seats
        self._supervisor.wait_until(
            lambda: (
                all(seat.instance.hello is not None for seat in seats)
                and self._supervisor.stats.launches > 0
            )
        )
        first = self._agree([seat.instance.hello for seat in seats])
        self.observation_space: spaces.Space[Any] = first.observation_space
        self.action_space: spaces.Space[Any] = first.action_space
        self.metadata: Mapping[str, Any] = first.metadata
        self.render_mode = first.render_mode
        self.strict = first.strict
        self._layout = space_layout(self.observation_space, 0)
        self._gatherer = Gatherer(self._layout, self.n)
        self._transitions = Transitions(
            self._supervisor, self._dealer, self._layout, self._gatherer, self._autoreset
        )
        self._in_step = InStep(seats) if first.realtime and self.n > 1 else None
        games = self.n + len(self._supervisor.spare_seats)
        warning = memory_warning(
            self._supervisor.roster.first_game_bytes(), games, available_bytes()
        )
        if warning is not None:
            warnings.warn(warning, stacklevel=4)
        actions = space_layout(self.action_space, 0)
        self._action_leaf = actions.leaves[0] if actions.is_array and actions.leaves else None

    # Episodes.

    def seed(self, seed: int | Sequence[int] | None, seeded: int | None = None) -> None:
        """Begin a new book of episodes; see `EpisodeBook`."""
        self._dealer.seed(seed, seeded)

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
    ) -> Batch:
        """Begin a new episode in every env, whatever it is doing.

        Games in real time begin together: each is stopped at its first observation until all are
        there, for the last may have to be launched first.

        Args:
            seeds: for envs of the user, a seed each; tasks have theirs from `seed`.
            options: a mapping for each env.
        """
        self._check_open()
        self._transitions.drop()
        self._dealer.take_back()
        seats = self._supervisor.seats
        self._pauses.wake(self._numbers)
        for seat in seats:
            seed = None if seeds is None else seeds[seat.index]
            given = {} if options is None else options[seat.index]
            seat.waits = True
            self._supervisor.play(seat, self._dealer.episode(seat, seed, given))
        self._begun_together()
        self._supervisor.wait_until(lambda: all(seat.ready for seat in seats))
        outcomes = [Outcome() for _ in seats]
        for seat, outcome in zip(seats, outcomes, strict=True):
            bind(seat, outcome)
        self._dealer.prepare_spares()
        self._began = True
        return self._gatherer.gather(seats, outcomes)

    def _begun_together(self, deadline: Deadline = NEVER) -> bool:
        """Let those go on that wait for each other, once all have arrived; whether they have."""
        waiting = [seat for seat in self._supervisor.seats if seat.waits]
        if not waiting:
            return True
        self._supervisor.wait_until(lambda: all(seat.arrived for seat in waiting), deadline)
        if not all(seat.arrived for seat in waiting):
            return False
        for seat in waiting:
            seat.waits = False
            self._supervisor.let_go_on(seat)
        return True

    # Steps.

    def send(self, actions: Any, envs: Iterable[int] | None = None) -> None:
        """Send one action to each of these envs; `recv` brings what came of them.

        Args:
            actions: as many as there are envs, in their order.
            envs: indices; None for all.

        Raises:
            ActionError: an action is outside its space, or there are too many or too few.
            AlreadyPendingCallError: an env's step before has not been received.
            ResetNeeded: no episode of the task has begun.
        """
        self._check_open()
        numbers = self._numbers if envs is None else [int(env) for env in envs]
        self._transitions.require_idle(numbers, "step", "the next one")
        if not self._began:
            if self._is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()  # SB3 lets envs be stepped that never were reset, and so do its users
        if self.strict:
            actions = action_checks.check(self.action_space, actions, numbers)
        else:
            action_checks.count(actions, len(numbers))
        leaf = self._action_leaf
        fit = leaf is not None and (
            self.strict or action_checks.is_batch_of(leaf, actions, len(numbers))
        )
        if self._pauses:
            self._pauses.wake(numbers)
        deadline = self._supervisor.step_deadline()
        now_s = time.monotonic()
        seats = self._supervisor.seats
        self._transitions.expect_steps(numbers)
        if self._in_step is not None:
            self._in_step.before_step(numbers)
        for env, action in zip(numbers, actions, strict=True):
            seat = seats[env]
            seat.answered = False
            if seat.fault is not None:  # it died between the steps: a synthetic transition follows
                self._supervisor.news.append(seat)
                continue
            if fit:
                seat.instance.step_checked(action, now_s, deadline)
            else:
                seat.instance.step(action, now_s, deadline)
        self._dealer.prepare_spares()

    def recv(self, min_ready: int | None = None, timeout_s: float | None = None) -> Batch:
        """Wait for the transitions of at least `min_ready` pending envs; gather all there are.

        An env that is over is ready when the first observation of its next episode is there.

        Args:
            min_ready: None for all that are pending.
            timeout_s: None for as long as the deadlines allow; fewer than `min_ready` envs, maybe
                none, come back when it has passed.

        Raises:
            NoAsyncCallError: no step is pending.
        """
        self._check_open()
        transitions = self._transitions
        pending = len(transitions.pending)
        if not pending:
            raise NoAsyncCallError("send actions before receiving what came of them", "step")
        wanted = pending if min_ready is None else min(min_ready, pending)
        if wanted == pending and timeout_s is None:
            plain = transitions.take_plain()
            if plain is not None:
                self._supervisor.stats.env_steps += len(plain)
                return self._gatherer.gather_plain(plain)
        transitions.wait_for(wanted, Deadline.after(timeout_s))
        return self._hand_out()

    def _hand_out(self) -> Batch:
        """The batch of all settled envs, which are no longer pending."""
        seats, outcomes = self._transitions.take()
        stats = self._supervisor.stats
        stats.env_steps += len(seats)
        stats.episodes += sum(outcome.over for outcome in outcomes if outcome is not None)
        if self._in_step is not None:
            self._in_step.after_step(outcomes)
        replays = self._supervisor.replays
        if replays is not None:
            for seat, outcome in zip(seats, outcomes, strict=True):
                if outcome is not None:
                    replays.settle(seat.name, outcome.info)
        return self._gatherer.gather(seats, outcomes)

    # Pauses.

    def pause(self, envs: Iterable[int] | None = None) -> None:
        """Stop the games of these envs: not a game loop passes until they go on.

        What is stopped are all processes below an env's worker, those of an env of the user's too.
        They go on with the next step or reset of the env, or with as many calls of `resume` as
        there were of `pause`. Pausing what is paused only counts.

        Args:
            envs: indices; None for all, and the spares with them. A spare that is being reset is
                waited for; one that is ready stays paused until an env takes it. (Spares in real
                time are paused anyway, from their first observation on.)

        Raises:
            AlreadyPendingCallError: an env's step has not been received.
            PauseError: a game could not be stopped; all of them go on.
        """
        self._check_open()
        numbers = self._numbers if envs is None else [int(env) for env in envs]
        self._transitions.require_idle(numbers, "pause", "you pause them")
        self._pauses.pause(numbers, spares=envs is None)

    def resume(self, envs: Iterable[int] | None = None) -> None:
        """Let the games of these envs go on, once it was called as often as `pause`.

        Args:
            envs: indices; None for all, and the spares with them.
        """
        self._check_open()
        numbers = self._numbers if envs is None else [int(env) for env in envs]
        self._pauses.resume(numbers, spares=envs is None)

    # Everything beside the step path.

    def row(self, batch: Batch, row: int) -> Any:
        """One env's observation out of a batch, copied."""
        return self._gatherer.row(batch, row)

    def call(
        self, envs: Sequence[int], operation: str, *arguments: Any, timeout_s: float | None = None
    ) -> list[Any]:
        """Run an operation of `sc2pool.tasks.players.operations` on the targets of these envs.

        A method of an env may have to ask its game: those that are paused go on while it runs.

        Raises:
            multiprocessing.TimeoutError: not all answered in time; later answers are dropped.
        """
        self._check_open()
        seats = [self._supervisor.seats[env] for env in envs]
        deadline = Deadline.after(timeout_s)
        with self._pauses.lifted(envs) if operation == "env_method" else nullcontext():
            return self._calls.run(seats, operation, for_worker(arguments), deadline)

    def render(self, envs: Sequence[int]) -> list[Any]:
        """A frame of each of these envs.

        A task whose game has died since its last step has nothing to draw: the frame shown before
        stands still, or is black where there was none.

        Raises:
            ResetNeeded: no episode of the task has begun.
        """
        if self._is_task and not self._began:
            raise ResetNeeded("call reset() before render()")
        frames = self.call(envs, "render")
        for row, env in enumerate(envs):
            if frames[row] is not None:
                self._frames[env] = frames[row]
            elif self._is_task:
                frames[row] = self._frames.get(env, np.zeros(FRAME_SHAPE, np.uint8))
        return frames

    def set_attr(self, envs: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute, now and in every later task object or instance of these envs."""
        self.call(envs, "set_attr", name, value)
        self._dealer.take_back()
        for env in envs:
            self._supervisor.seats[env].attributes[name] = value
        if self._began:
            self._dealer.prepare_spares()

    def void_episodes(self) -> None:
        """Take back the episodes that spares hold; they are dealt anew."""
        self._dealer.take_back()

    def action_mask(self, env: int) -> Array | None:
        """The mask that came with the env's newest observation; None where there was none."""
        source = self._supervisor.seats[env].source
        if source is None or not source.end.flags() & MASKED:
            return None
        return source.end.mask()

    def stats(self) -> PoolStats:
        """Counters of the pool, and what each instance is doing; may be called from any thread."""
        return self._supervisor.stats_now()

    @property
    def closed(self) -> bool:
        return self._supervisor.closed

    def _check_open(self) -> None:
        if self._supervisor.closed:
            raise ClosedError("the pool is closed")
        if self._supervisor.failure is not None:
            raise ClosedError(f"the pool has failed: {self._supervisor.failure}")

    def close(self, grace_s: float | None = None) -> None:
        """End every process of the pool; bounded, and may be called again.

        Args:
            grace_s: how long envs of the user may take to close by themselves; None for 2 s.
        """
        if grace_s is None:
            self._supervisor.close(ask_first=not self._is_task)
        else:
            self._supervisor.close(ask_first=not self._is_task and grace_s > 0, grace_s=grace_s)
        if self._finalizer is not None:
            self._finalizer.detach()
