"""The trainer of a simulation, which calls the pool as the schedule says.

`expectations` checks the pool's answers. Only errors of the documented types may reach the trainer,
and each error needs a reason. After an interrupt, the next reset must succeed or say that the pool
is closed. After `close` no process and no descriptor may be left.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded
from gymnasium.error import Error as GymnasiumError

from sc2pool.config import Limits, PoolConfig, RecyclePolicy, RestartPolicy
from sc2pool.errors import ClosedError, CrashLoopError, PauseError, SC2PoolError
from sc2pool.pool.episodes import Request
from sc2pool.pool.instances.states import LIVE, State
from sc2pool.pool.pool import Pool
from tests.support.simulation import tracing
from tests.support.simulation.expectations import NEW, OVER, SEED_OF_BOOK, Expectations
from tests.support.simulation.schedule import CALLS, Event, Schedule
from tests.support.simulation.system import system
from tests.support.simulation.world import World

TYPED = (
    SC2PoolError,
    multiprocessing.TimeoutError,
    AlreadyPendingCallError,
    NoAsyncCallError,
    GymnasiumError,
)
HAS_EPISODE = LIVE - {State.NEW, State.STARTING, State.LAUNCHING, State.IDLE, State.OVER}
ODD_OPTIONS = {("a", "tuple"): "no key of JSON's"}
CLOSES = 3
"""Maximum number of calls of `close`, if interrupts come during the calls."""

Envs = tuple[int, ...] | None


class Trainer:
    """One trainer with one pool."""

    def __init__(self, schedule: Schedule, world: World, reports: Path) -> None:
        self._schedule = schedule
        self._world = world
        self._expected = Expectations(schedule, world)
        self._config = PoolConfig(
            limits=Limits(concurrent_launches=schedule.launches),
            recycle=RecyclePolicy(episodes=schedule.recycle),
            restart=RestartPolicy(per_env=schedule.patience, per_pool_per_env=schedule.patience),
            envs_per_worker=schedule.each,
            fault_report_dir=reports,
        )
        self._pool: Pool
        self._ended = False
        self._made = 0
        self._lines = 0

    # The schedule.

    def play(self) -> None:
        """Play the schedule to its end.

        Raises:
            Violation: The pool has broken a rule.
        """
        events = self._world.events
        if events and events[0][0] == "line":
            self._lines = events.popleft()[1]
        if self._done("make", self._make):
            self._seed()
            self._play_events()
            self._close()
            del self._pool
        self._check_what_is_left()

    def _play_events(self) -> None:
        events = self._world.events
        while events:
            event = events.popleft()
            if event[0] == "line":
                self._lines = event[1]
            elif event[0] in CALLS:
                self._play_call(event)
            else:
                self._world.apply(event)

    def _play_call(self, event: Event) -> None:
        name, *arguments = event
        getattr(self, f"_{name}")(*arguments)
        seats = self._pool._supervisor.seats
        if self._expected.certain and len({id(seat.instance) for seat in seats}) < len(seats):
            raise self._world.broken("an instance sits in two seats")

    def _call(self, name: str, function: Callable[[], Any], *allowed: type[Exception]) -> Any:
        """Make one call, and return its result; None if it raised an error that is allowed."""
        world = self._world
        interrupts = world.interrupts
        lines, self._lines = self._lines, 0
        problem: BaseException | None = None
        world.begin_call()
        try:
            with tracing.interrupt_at(lines, world):
                return function()
        except BaseException as error:
            problem = error
        finally:
            world.end_call()
            if world.violation is not None:
                raise world.violation
        try:
            self._judge(name, problem, allowed, interrupted=world.interrupts > interrupts)
        finally:
            del problem  # the error's traceback refers to a pool that could not be made
        return None

    def _judge(
        self, name: str, problem: BaseException, allowed: tuple[type, ...], *, interrupted: bool
    ) -> None:
        expected = self._expected
        if interrupted and isinstance(problem, KeyboardInterrupt):
            expected.certain = False
        elif isinstance(problem, TYPED) and self._may_end(problem):
            self._ended = True
            expected.certain = False
        elif not isinstance(problem, TYPED) or not (
            isinstance(problem, allowed)
            or (isinstance(problem, ClosedError) and self._ended)
            or (isinstance(problem, multiprocessing.TimeoutError) and self._world.harm)
            or not (expected.certain or name in ("make", "reset", "close"))
        ):
            raise self._world.broken(f"{name} raises {problem!r}") from problem

    def _may_end(self, problem: Exception) -> bool:
        """True if there is a reason for this error, which ends the pool."""
        world = self._world
        if isinstance(
            problem, ClosedError
        ):  # an interrupt cut short the call that would have given the reason
            return not self._expected.certain and world.harm + world.raised > 0
        if isinstance(problem, CrashLoopError):
            return world.harm > 1
        ends = isinstance(problem, SC2PoolError) and not isinstance(problem, PauseError)
        return ends and world.raised + world.refused > 0

    # The calls, by their names in a schedule.

    def _make(self) -> None:
        schedule = self._schedule
        self._pool = Pool(
            [None] * schedule.n,  # type: ignore[list-item]
            one_book=schedule.one_book,
            config=self._config,
            spares=schedule.spares,
            autoreset=schedule.autoreset,
            max_concurrency=schedule.busy,
            agree=lambda hellos: hellos[0],
            system=system(self._world),
        )
        self._world.next_wake_s = self._pool._supervisor.fleet.next_wake_s

    def _reset(self, how: str = "") -> None:
        mark = self._new() if how == "marked" else 0
        options: dict[Any, Any] = {"mark": mark} if mark else ODD_OPTIONS if how == "odd" else {}
        batch = self._call("reset", lambda: self._pool.reset(None, [options] * self._schedule.n))
        if batch is None:
            self._expected.certain = False
        else:
            self._expected.everything_begins(mark)
            self._expected.check(batch, self._schedule.n)

    def _step(self) -> None:
        if self._send(None):
            self._recv(None, None)

    def _send(self, chosen: Envs) -> bool:
        expected, envs = self._expected, self._envs(chosen)
        actions = [self._new() for _ in envs]
        given: Any = actions if self._schedule.pickled else np.array(actions, np.int64)[:, None]
        new = NEW in expected.stages
        allowed: list[type[Exception]] = []
        if expected.busy(envs):
            allowed.append(AlreadyPendingCallError)
        elif new or any(expected.stages[env] == OVER for env in envs):
            allowed.append(ResetNeeded)
        if not self._done("send", lambda: self._pool.send(given, chosen and envs), *allowed):
            return False
        if new:  # a user's envs begin episodes by themselves, without a sign
            expected.certain = False
        elif expected.certain and allowed:
            raise self._world.broken(f"send({chosen}) raises no {allowed[0].__name__}")
        expected.sent(envs, actions)
        return True

    def _recv(self, min_ready: int | None, timeout_s: float | None) -> None:
        expected = self._expected
        pending = expected.pending
        if min_ready is not None or timeout_s is not None:
            expected.any_order()  # the rows that are ready first come first
        allowed = () if pending else (NoAsyncCallError,)
        batch = self._call("recv", lambda: self._pool.recv(min_ready, timeout_s), *allowed)
        if batch is not None:
            wanted = pending if min_ready is None else min(min_ready, pending)
            expected.check(batch, wanted if timeout_s is None else 0)

    def _begin(self, chosen: Envs) -> None:
        envs = self._envs(chosen)
        mark = self._new()
        requests = [Request(None, {"mark": mark})] * len(envs) if mark % 2 else None
        self._expected.any_order()
        if self._done(
            "begin", lambda: self._pool.begin(chosen and envs, requests), *self._if_busy(envs)
        ):
            self._expected.begins(envs, mark if requests else 0)

    def _wait(self, timeout_s: float | None) -> None:
        self._call("wait", lambda: self._pool.wait(timeout_s))

    def _pause(self, chosen: Envs) -> None:
        envs = self._envs(chosen)
        allowed = PauseError, *self._if_busy(envs)
        paused = self._done("pause", lambda: self._pool.pause(chosen and envs), *allowed)
        for env in envs if paused and self._expected.certain else ():
            instance = self._pool._supervisor.env_seats[env].instance
            worker = self._world.workers.get(instance.number)
            runs = worker is not None and worker.alive and not worker.stopped
            if runs and instance.state in HAS_EPISODE:
                raise self._world.broken(f"env {env} is {instance.state} after pause()")

    def _resume(self, chosen: Envs) -> None:
        self._call("resume", lambda: self._pool.resume(chosen and self._envs(chosen)))

    def _ask(self, chosen: Envs, timeout_s: float | None, method: bool) -> None:
        envs, token = self._envs(chosen), self._new()
        operation = "env_method" if method else "get_attr"
        allowed: list[type[Exception]] = [PauseError] if method else []
        if timeout_s is not None:
            allowed.append(multiprocessing.TimeoutError)
        answers = self._call(
            "ask", lambda: self._pool.call(envs, operation, token, timeout_s=timeout_s), *allowed
        )
        self._may_be_ahead()
        if answers is not None and [answer[1:] for answer in answers] != [(token,)] * len(envs):
            raise self._world.broken(f"call {token} of envs {envs} is answered {answers}")

    def _may_be_ahead(self) -> None:
        """If an env died after its last step, the call has begun the env's next episode."""
        if any(seat.fault is not None for seat in self._pool._supervisor.env_seats):
            self._expected.any_order()

    def _set_attr(self, chosen: Envs) -> None:
        envs, value = self._envs(chosen), self._new()
        done = self._done("set_attr", lambda: self._pool.set_attr(envs, "attribute", value))
        self._may_be_ahead()
        self._expected.attribute_set(envs, value if done else None)

    def _seed(self) -> None:
        self._call("seed", lambda: self._pool.seed(SEED_OF_BOOK if self._schedule.seeded else None))
        self._expected.new_book()

    def _look(self) -> None:
        def look() -> None:
            self._pool.stats()
            repr(self._pool)
            if self._expected.certain and not self._expected.pending and self._pool.began:
                self._expected.check_newest(self._pool.newest_observations())

        self._call("look", look)

    def _close(self) -> None:
        if not self._ended and not self._world.interrupts:
            counted = self._pool._supervisor.stats.env_steps
            if counted != self._expected.transitions:
                raise self._world.broken(
                    f"{counted} transitions are counted, not {self._expected.transitions}"
                )
        self._ended = True
        self._expected.certain = False
        for _ in range(CLOSES):
            if self._done("close", self._pool.close):
                break
        for call in (self._pool.reset, self._pool.recv):
            self._call("a call after close", call)

    def _done(self, name: str, function: Callable[[], Any], *allowed: type[Exception]) -> bool:
        """Make a call that returns nothing; False if it raised an error that is allowed."""
        return bool(self._call(name, lambda: (function(), True), *allowed))

    def _if_busy(self, envs: tuple[int, ...]) -> tuple[type[Exception], ...]:
        return (AlreadyPendingCallError,) if self._expected.busy(envs) else ()

    def _envs(self, chosen: Envs) -> tuple[int, ...]:
        every = range(self._schedule.n)
        return tuple(every if chosen is None else (env for env in chosen if env in every))

    def _new(self) -> int:
        """A new number, which identifies an action, option or value."""
        self._made += 1
        return self._made

    # The end.

    def _check_what_is_left(self) -> None:
        world = self._world
        if world.left:
            gc.collect()  # a half-made pool is closed by garbage collection
        if world.left:
            raise world.broken(f"left: {world.left}")

    def abandon(self) -> None:
        """Drop a pool that has broken a rule, because perhaps such a pool cannot be closed."""
        pool = vars(self).get("_pool")
        if pool is not None and pool._lifetime._end is not None:
            pool._lifetime._end.detach()
