"""The pool: n seats stepped as one batch. The faces in `sc2pool.envs` are thin coats over it.

    send(actions) ─► every seat's instance steps ─► receive(): wait for all, deal the next tickets
                     to those that are over, wait for their first observations, gather the batch

Rules: a batch that was handed out is never written again; every env gets exactly one transition
per step, a real one or, after a fault, a synthetic one that is marked; tickets are dealt in the
order of env indices once all replies are in, so a seeded run does not depend on timing.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool.config import PoolConfig
from sc2pool.errors import ClosedError, ConfigError
from sc2pool.pool import actions as action_checks
from sc2pool.pool.layout import Array, space_layout
from sc2pool.pool.pickling import for_worker
from sc2pool.pool.slot import MASKED, TERMINATED, TRUNCATED
from sc2pool.pool.states import Event, State
from sc2pool.pool.supervisor import FaultReport, Seat, Supervisor
from sc2pool.pool.tickets import TicketBook
from sc2pool.tasks.player import PlayerSpec, Ticket


@dataclass
class Batch:
    """What one step, or one reset, of all envs brought.

    Attributes:
        observations: in the space's structure; each array has shape (n, …). A tuple of n
            observations where the space has no fixed layout.
        rewards: float64 (n,).
        terminated: bool (n,).
        truncated: bool (n,).
        infos: a dict per env.
        final_observations: the episode's last observation where it ended, else None.
        reset_infos: the info of the new episode's reset where one began, else None.
    """

    observations: Any
    rewards: Array
    terminated: Array
    truncated: Array
    infos: list[dict[str, Any]]
    final_observations: list[Any]
    reset_infos: list[dict[str, Any] | None]


class Pool:
    """Owns n seats and steps them together.

    Args:
        specs: a player for each env.
        tickets: whether episodes come from one book for all envs (tasks), or each env goes on
            by itself (environments of the user).
        config: limits and restart policy.
        autoreset: whether an env that is over goes on to its next episode in the same step.

    Raises:
        ConfigError: the players do not agree on their spaces, or a game cannot be started.
    """

    def __init__(
        self,
        specs: Sequence[PlayerSpec],
        *,
        tickets: bool,
        config: PoolConfig,
        autoreset: bool = True,
    ) -> None:
        self.n = len(specs)
        self._tickets = tickets
        self._autoreset = autoreset
        self._book = TicketBook()
        self._episodes = [0] * self.n
        self._pending = False
        self._last: Batch | None = None
        self._supervisor = supervisor = Supervisor([for_worker(s) for s in specs], config)
        self._finalizer = weakref.finalize(self, supervisor.close, ask_first=False)
        try:
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
        hellos = [seat.instance.hello for seat in seats]
        first = hellos[0]
        assert first is not None
        for env, hello in enumerate(hellos):
            assert hello is not None
            for name in ("observation_space", "action_space"):
                given, expected = getattr(hello, name), getattr(first, name)
                if given != expected:
                    raise ConfigError(f"env {env}: {name} is {given}, but env 0 has {expected}")
        self.observation_space: spaces.Space[Any] = first.observation_space
        self.action_space: spaces.Space[Any] = first.action_space
        self.metadata: Mapping[str, Any] = first.metadata
        self.strict = first.strict
        self._layout = space_layout(self.observation_space, 0)
        self._checked_array = first.strict and isinstance(
            self.action_space, action_checks.ARRAY_SPACES
        )

    # Episodes.

    def seed(self, seed: int | None, seeded: int | None = None) -> None:
        """Begin a new book of tickets; see `TicketBook`."""
        self._book = TicketBook(seed, seeded)

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
    ) -> Batch:
        """Begin a new episode in every env, whatever it is doing.

        Args:
            seeds: for envs of the user, a seed each; tasks have theirs from `seed`.
            options: a mapping for each env.
        """
        self._check_open()
        self._finish_pending()
        batch = self._empty_batch()
        for seat in self._supervisor.seats:
            seed = None if seeds is None else seeds[seat.env]
            given = {} if options is None else options[seat.env]
            self._supervisor.play(seat, self._deal(seat, seed, given))
        self._begin_episodes(self._supervisor.seats, batch)
        self._gather(batch)
        return batch

    def _deal(self, seat: Seat, seed: int | None, options: Mapping[str, Any]) -> Ticket:
        if self._tickets:
            return self._book.deal(options)
        number = self._episodes[seat.env]
        self._episodes[seat.env] += 1
        return Ticket(number, seed, dict(options))

    def _begin_episodes(self, seats: Sequence[Seat], batch: Batch) -> None:
        """Wait for these seats' first observations and bind them."""
        self._supervisor.wait_until(
            lambda: all(seat.instance.state is State.READY for seat in seats)
        )
        for seat in seats:
            instance = seat.instance
            instance.on(Event.BOUND)
            seat.ticket = None
            observation, info = instance.opened_aside()
            if seat.fault is not None:
                info["sc2pool.fault"] = fault_info(seat.fault)
                seat.fault = None
            batch.reset_infos[seat.env] = info
            self._put_aside(batch, seat, observation)

    # Steps.

    def send(self, actions: Any) -> None:
        """Send one action per env; `receive` brings what came of them.

        Raises:
            ActionError: an action is outside its space, or there are not n of them.
            AlreadyPendingCallError: the step before has not been received.
            ResetNeeded: no episode of the task has begun.
        """
        self._check_open()
        if self._pending:
            raise AlreadyPendingCallError("receive the pending step before the next one", "step")
        if self._last is None:
            if self._tickets:
                raise ResetNeeded("call reset() before the first step")
            self.reset()  # SB3 lets envs be stepped that never were reset, and so do its users
        seats = self._supervisor.seats
        if self.strict:
            actions = action_checks.check(self.action_space, actions, range(self.n))
        else:
            action_checks.count(actions, self.n)
        deadline = self._supervisor.step_deadline()
        self._pending = True
        for seat, action in zip(seats, actions, strict=True):
            seat.answered = False
            if seat.fault is not None:
                continue  # it died between the steps: its transition will be a synthetic one
            if self._checked_array:
                seat.instance.step_checked(action, deadline)
            else:
                seat.instance.step(action, deadline)

    def receive(self) -> Batch:
        """Wait for every env's transition, begin the episodes that follow, gather the batch.

        Raises:
            NoAsyncCallError: no step is pending.
        """
        self._check_open()
        if not self._pending:
            raise NoAsyncCallError("send actions before receiving what came of them", "step")
        batch = self._empty_batch()
        self._await_replies()
        over = []
        reports: list[tuple[dict[str, Any], FaultReport]] = []
        for seat in self._supervisor.seats:
            if seat.answered:
                self._take(batch, seat)
            else:
                reports.append(self._synthesize(batch, seat))
            if batch.terminated[seat.env] or batch.truncated[seat.env]:
                over.append(seat)
        self._supervisor.stats.env_steps += self.n
        self._supervisor.stats.episodes += len(over)
        if self._autoreset and over:
            for seat in over:
                self._supervisor.play(seat, self._deal(seat, None, {}))
            self._begin_episodes(over, batch)
        for info, report in reports:
            info["recovery_s"] = time.monotonic() - report.at_s
        self._pending = False
        self._gather(batch)
        return batch

    def _await_replies(self) -> None:
        seats = self._supervisor.seats
        self._supervisor.wait_until(
            lambda: all(seat.instance.state is not State.STEPPING for seat in seats)
        )

    def _finish_pending(self) -> None:
        """Await the replies of a step that will not be received, and drop them."""
        if self._pending:
            self._await_replies()
            self._pending = False

    def _take(self, batch: Batch, seat: Seat) -> None:
        env = seat.env
        instance = seat.source
        assert instance is not None
        flags = instance.end.flags()
        batch.rewards[env] = instance.end.reward()
        batch.terminated[env] = bool(flags & TERMINATED)
        batch.truncated[env] = bool(flags & TRUNCATED)
        observation, batch.infos[env] = instance.opened_aside()
        if flags & (TERMINATED | TRUNCATED):
            final = instance.end.observation() if self._layout.fixed else observation
            batch.final_observations[env] = final
        self._put_aside(batch, seat, observation)

    def _synthesize(self, batch: Batch, seat: Seat) -> tuple[dict[str, Any], FaultReport]:
        """Make up the transition of an env whose instance died: a truncation, never an end.

        Returns:
            The fault as it stands in the info, and as it was reported.
        """
        env = seat.env
        report, seat.fault = seat.fault, None
        assert report is not None, "no answer, and no fault that explains it"
        info = fault_info(report)
        batch.truncated[env] = True
        batch.infos[env] = {"sc2pool.synthetic": True, "sc2pool.fault": info}
        assert self._last is not None
        batch.final_observations[env] = self.row(self._last, env)
        seat.source = None
        self._put_aside(batch, seat, batch.final_observations[env])
        return info, report

    def row(self, batch: Batch, env: int) -> Any:
        """One env's observation out of a batch, copied."""
        if not self._layout.fixed:
            return batch.observations[env]
        arrays = self._leaves(batch.observations)
        return self._layout.build(lambda index: arrays[index][env].copy()[()])

    # Batches.

    def _empty_batch(self) -> Batch:
        n = self.n
        return Batch(
            observations=[None] * n,
            rewards=np.zeros(n, np.float64),
            terminated=np.zeros(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            infos=[{} for _ in range(n)],
            final_observations=[None] * n,
            reset_infos=[None] * n,
        )

    def _put_aside(self, batch: Batch, seat: Seat, observation: Any) -> None:
        if not self._layout.fixed:
            batch.observations[seat.env] = observation

    def _gather(self, batch: Batch) -> None:
        """Copy every seat's observation into the batch, once."""
        if self._layout.leaves is None:
            batch.observations = tuple(batch.observations)
        else:
            arrays = [np.empty((self.n, *leaf.shape), leaf.dtype) for leaf in self._layout.leaves]
            for seat in self._supervisor.seats:
                if seat.source is not None:
                    seat.source.end.copy_row(arrays, seat.env)
                else:
                    self._repeat_row(arrays, seat.env)
            batch.observations = self._layout.build(lambda index: arrays[index])
        self._last = batch

    def _repeat_row(self, arrays: list[Array], env: int) -> None:
        assert self._last is not None
        for array, last in zip(arrays, self._leaves(self._last.observations), strict=True):
            array[env] = last[env]

    def _leaves(self, observations: Any) -> list[Array]:
        return [part for _, part in self._layout.parts(observations)]

    # Everything beside the step path.

    def call(self, envs: Sequence[int], operation: str, *arguments: Any) -> list[Any]:
        """Run an operation of `sc2pool.tasks.operations` on the targets of these envs."""
        self._check_open()
        seats = [self._supervisor.seats[env] for env in envs]
        return self._supervisor.call(seats, operation, for_worker(arguments))

    def set_attr(self, envs: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute, now and in every later task object or instance of these envs."""
        self.call(envs, "set_attr", name, value)
        for env in envs:
            self._supervisor.seats[env].attributes[name] = value

    def action_mask(self, env: int) -> Array | None:
        """The mask that came with the env's newest observation; None where there was none."""
        source = self._supervisor.seats[env].source
        if source is None or not source.end.flags() & MASKED:
            return None
        return source.end.mask()

    def stats(self) -> dict[str, Any]:
        """Counters of the pool and what each instance is doing, as plain data.

        Keys: `game_version` (str; begins with "standin" on the stand-in; None for envs of the
        user), `base_build`, `launches`, `env_steps`, `episodes`, `recycles` (count by fault
        kind), `reset_s` (by rung) and `recovery_s` (from a fault to the next first observation),
        both as `count`, `p50`, `p95`, `max` of the newest thousand, and `instances` (a dict per env: `env`, `instance`, `state`,
        `pid`, `port`).
        """
        instances = []
        for seat in self._supervisor.seats:
            facts = seat.instance.facts
            instances.append(
                {
                    "env": seat.env,
                    "instance": seat.instance.number,
                    "state": str(seat.instance.state),
                    "pid": facts.pid if facts else None,
                    "port": facts.port if facts else None,
                }
            )
        return {**self._supervisor.stats.as_dict(), "instances": instances}

    @property
    def closed(self) -> bool:
        return self._supervisor.closed

    def _check_open(self) -> None:
        if self._supervisor.closed:
            raise ClosedError("the pool is closed")
        if self._supervisor.failure is not None:
            raise ClosedError(f"the pool has failed: {self._supervisor.failure}")

    def close(self) -> None:
        """End every process of the pool; bounded, and may be called again."""
        self._supervisor.close(ask_first=not self._tickets)
        self._finalizer.detach()


def fault_info(report: FaultReport) -> dict[str, Any]:
    """A fault as it stands in an info."""
    return {
        "kind": str(report.fault.kind),
        "phase": str(report.fault.phase),
        "detail": report.fault.detail,
        "instance": report.instance,
        "recovery_s": time.monotonic() - report.at_s,
    }
