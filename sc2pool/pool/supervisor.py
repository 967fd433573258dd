"""Keeps one live instance bound to every seat, and brings each to the ticket it is to play.

    events (doorbells, messages, ends of file, deadlines) ─► supervisor ─► launch, reset, replace

It acts only inside `wait_until`, in the trainer's thread; between calls the instances go on by
themselves. Rules: an instance that fails in any way is disposed of, and its seat gets a new one
with the same ticket; what no new instance can mend (the user's code, the set-up, too many
recycles) ends the whole pool and is raised; every wait has a deadline.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import CrashLoopError, Fault, FaultKind, SC2PoolError
from sc2pool.pool import messages, restart
from sc2pool.pool.channel import ChannelClosedError
from sc2pool.pool.doorbell import Waiter
from sc2pool.pool.instance import Instance
from sc2pool.pool.raised import to_exception, to_result
from sc2pool.pool.run_dir import RunDir
from sc2pool.pool.slot import TERMINATED, TRUNCATED
from sc2pool.pool.states import Event, State
from sc2pool.pool.stats import Stats
from sc2pool.tasks.player import Ticket

log = logging.getLogger("sc2pool")

_CLOSE_GRACE_S = 2.0
_BACKSTOP_S = 5.0
"""The worker keeps the game's deadlines; this much later the trainer gives up on the worker."""
_SLOW_FACTOR = 3.0
"""A slow but living game may stretch a step to this many times its limit."""


@dataclass
class FaultReport:
    """A fault, the instance it ended, and the monotonic time."""

    fault: Fault
    instance: int
    at_s: float


@dataclass
class Seat:
    """One env's place in the pool.

    Attributes:
        env: its index.
        spec: the pickled player that sits here.
        ticket: the episode its instance is to be brought to; None while one is played.
        source: the instance whose slot holds the newest observation; it may be gone already.
            None where there is no whole one.
        answered: the reply to the newest action is there, in `source`.
        fault: the first fault that no transition has told of yet.
        attributes: what `set_attr` set.
        causes: its faults so far, for the message that ends a crash loop.
    """

    env: int
    spec: bytes
    instance: Instance
    source: Instance | None = None
    ticket: Ticket | None = None
    answered: bool = False
    fault: FaultReport | None = None
    down_since_s: float | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    recycles_s: list[float] = field(default_factory=list)
    causes: list[Fault] = field(default_factory=list)
    launch_not_before_s: float = 0.0


class Supervisor:
    """Owner of all instances of a pool.

    Args:
        specs: a pickled `PlayerSpec` for each env.
        config: limits and restart policy.
    """

    def __init__(self, specs: list[bytes], config: PoolConfig) -> None:
        self._config = config
        self._owner_pid = os.getpid()
        self._instances_made = 0
        self._recycles_s: list[float] = []
        self._calls_made = 0
        self._answers: dict[int, messages.Answer] = {}
        self.stats = Stats()
        self.failure: SC2PoolError | None = None
        self.closed = False
        self._handlers: dict[type, Callable[[Seat, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Launched: self._on_launched,
            messages.EpisodeStarted: self._on_episode_started,
            messages.Aside: self._on_aside,
            messages.Answer: self._on_answer,
            messages.Faulted: self._on_faulted,
            messages.Raised: self._on_raised,
        }
        self.seats: list[Seat] = []
        self._waiter = Waiter()
        self._run_dir = RunDir()
        try:
            for env, spec in enumerate(specs):
                self.seats.append(Seat(env, spec, self._make(env, spec)))
                self._watch(self.seats[env])
        except BaseException:
            self.close(ask_first=False)
            raise

    # What the pool asks for.

    def play(self, seat: Seat, ticket: Ticket) -> None:
        """Bring the seat to this ticket's first observation, as soon as its instance can."""
        seat.ticket = ticket
        if seat.instance.state in _RESETTABLE:
            self._reset(seat)

    def step_deadline(self) -> Deadline:
        """Until when a step sent now must be answered."""
        return Deadline.after(_SLOW_FACTOR * self._config.limits.step_s + _BACKSTOP_S)

    def call(self, seats: Sequence[Seat], operation: str, payload: bytes) -> list[Any]:
        """Run an operation on these seats' targets; results in the order of the seats.

        Raises what the operation raised. Where an instance dies under it, its successor is asked.
        """
        asked: dict[int, tuple[Instance, int]] = {}
        answers: dict[int, messages.Answer] = {}

        def answered() -> bool:
            for place, seat in enumerate(seats):  # a seat may be asked more than once
                instance, number = asked.get(place, (None, -1))
                if number in self._answers:
                    answers[place] = self._answers.pop(number)
                if place in answers or instance is seat.instance:
                    continue
                # Not while a reply is awaited: it may be large, and if both sides send, none reads.
                if seat.instance.hello is not None and seat.instance.state not in _AWAITED:
                    self._calls_made += 1
                    asked[place] = (seat.instance, self._calls_made)
                    seat.instance.call(self._calls_made, operation, payload)
            return len(answers) == len(seats)

        self.wait_until(answered)
        return [to_result(answers[place]) for place in range(len(seats))]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Handle what happens until `condition()` holds.

        Raises:
            SC2PoolError: what ends the pool; all instances are gone then.
        """
        for seat in self.seats:  # rings that an interrupted wait has lost
            self._on_ring(seat)
        plan = True
        wake_s = 0.0
        while not condition():
            if plan:
                self._launch_next()
                wake_s = self._next_wake_s()
            ready = self._waiter.wait(max(0.0, wake_s - time.monotonic()))
            plan = not ready
            for seat, instance, is_bell in ready:
                if seat.instance is not instance:
                    continue  # replaced while this batch of events was handled
                if is_bell:
                    self._on_ring(seat)
                else:
                    plan = True
                    self._on_readable(seat)
            if not ready:
                self._check_deadlines()
            if self.failure is not None:
                self._end_instances()
                raise self.failure

    def close(self, *, ask_first: bool) -> None:
        """End all instances; with `ask_first`, players may close by themselves for 2 s."""
        if self.closed:
            return
        self.closed = True
        if os.getpid() != self._owner_pid:
            return  # a forked child's copy: everything here is its parent's
        with ExitStack() as closing:  # a second Ctrl-C cuts the grace short, and nothing else
            closing.callback(self._run_dir.close)
            closing.callback(self._waiter.close)
            closing.callback(self._end_instances)
            if ask_first and self.failure is None:
                for seat in self.seats:
                    seat.instance.ask_to_close()
                grace = Deadline.after(_CLOSE_GRACE_S)
                for seat in self.seats:
                    seat.instance.wait_for_exit(grace)

    # What happens.

    def _on_ring(self, seat: Seat) -> None:
        instance = seat.instance
        if instance.state not in _AWAITED or not instance.replied():
            return
        instance.deadline = NEVER
        seat.source = instance
        if instance.state is State.STEPPING:
            seat.answered = True
            over = instance.end.flags() & (TERMINATED | TRUNCATED)
            instance.on(Event.EPISODE_OVER if over else Event.REPLY)
            return
        instance.on(Event.FIRST_OBSERVATION)
        now_s = time.monotonic()
        self.stats.count_reset(instance.rung, now_s - instance.asked_at_s)
        if seat.down_since_s is not None:
            self.stats.recovery_s.append(now_s - seat.down_since_s)
            seat.down_since_s = None

    def _on_readable(self, seat: Seat) -> None:
        instance = seat.instance
        try:
            received = instance.channel.receive()
        except ChannelClosedError:
            self._fault(seat, instance.exit_fault(), "")
            return
        for message in received:
            self._handlers[type(message)](seat, message)
            if seat.instance is not instance:
                return

    def _on_hello(self, seat: Seat, message: messages.Hello) -> None:
        try:
            seat.instance.welcome(message)
        except SC2PoolError as error:
            self.failure = error

    def _on_launched(self, seat: Seat, message: messages.Launched) -> None:
        seat.instance.facts = message.facts
        seat.instance.deadline = NEVER
        seat.instance.on(Event.LAUNCHED)
        self.stats.launches += 1
        self.stats.facts = message.facts
        if seat.ticket is not None:
            self._reset(seat)

    def _on_episode_started(self, seat: Seat, message: messages.EpisodeStarted) -> None:
        seat.instance.rung = message.rung

    def _on_aside(self, seat: Seat, message: messages.Aside) -> None:
        seat.instance.take_aside(message)
        self._on_ring(seat)

    def _on_answer(self, _: Seat, message: messages.Answer) -> None:
        self._answers[message.number] = message

    def _on_faulted(self, seat: Seat, message: messages.Faulted) -> None:
        self._fault(seat, message.fault, message.log_tail)

    def _on_raised(self, seat: Seat, message: messages.Raised) -> None:
        self.failure = to_exception(message, seat.env)

    def _check_deadlines(self) -> None:
        for seat in self.seats:
            instance = seat.instance
            if instance.deadline.expired():
                # The answer may be there although its ring was not seen: look once more.
                self._on_ring(seat)
                if instance.deadline.expired():
                    detail = f"the worker did not answer in time in state {instance.state}"
                    self._fault(seat, Fault(FaultKind.DEADLINE, instance.phase(), detail), "")

    # What is done about it.

    def _fault(self, seat: Seat, fault: Fault, log_tail: str) -> None:
        """The instance is over: end it, and put another in its place unless that is hopeless."""
        instance = seat.instance
        now_s = time.monotonic()
        instance.on(Event.FAULT)
        self._retire(instance)
        log.warning("env %d, instance %d: %s", seat.env, instance.number, fault)
        self.stats.count_fault(fault)
        seat.causes.append(fault)
        seat.recycles_s.append(now_s)
        self._recycles_s.append(now_s)
        if seat.fault is None:
            seat.fault = FaultReport(fault, instance.number, now_s)
        if seat.down_since_s is None:
            seat.down_since_s = now_s
        hopeless = restart.hopeless(seat.causes, launches=self.stats.launches) or restart.exceeded(
            self._config.restart, len(self.seats), seat.recycles_s, self._recycles_s, now_s
        )
        if hopeless:
            causes = "\n".join(f"  {cause}" for cause in seat.causes[-3:])
            tail = f"\nEnd of the game's log:\n{log_tail}" if log_tail else ""
            self.failure = CrashLoopError(
                f"env {seat.env}: {hopeless}; the last causes:\n{causes}{tail}"
            )
            return
        seat.launch_not_before_s = now_s + restart.backoff_s(seat.recycles_s, now_s)
        seat.instance = self._make(seat.env, seat.spec)
        self._watch(seat)

    def _make(self, env: int, spec: bytes) -> Instance:
        number = self._instances_made
        self._instances_made += 1
        instance = Instance(number, env, spec, self._run_dir.instance_dir(number))
        instance.deadline = Deadline.after(self._launch_timeout_s())
        return instance

    def _watch(self, seat: Seat) -> None:
        instance = seat.instance
        self._waiter.add_bell(instance.reply_bell, (seat, instance, True))
        self._waiter.add(instance.channel.fileno(), (seat, instance, False))

    def _retire(self, instance: Instance) -> None:
        self._waiter.remove(instance.reply_bell.listening)
        self._waiter.remove(instance.channel.fileno())
        instance.dispose()

    def _end_instances(self) -> None:
        with ExitStack() as ending:  # each is ended, even where Ctrl-C interrupts another's end
            for seat in self.seats:
                ending.callback(seat.instance.dispose)
            for seat in self.seats:
                seat.instance.kill()
                if seat.instance.live:
                    seat.instance.on(Event.CLOSE)
        for seat in self.seats:
            seat.source = None
            seat.instance.unmap()

    def _launch_next(self) -> None:
        launching = sum(seat.instance.state is State.LAUNCHING for seat in self.seats)
        now_s = time.monotonic()
        for seat in self.seats:
            if launching == self._config.limits.concurrent_launches:
                return
            instance = seat.instance
            waits = instance.state is State.NEW and instance.hello is not None
            if waits and now_s >= seat.launch_not_before_s:
                instance.launch(self._launch_timeout_s(), _BACKSTOP_S)
                launching += 1

    def _launch_timeout_s(self) -> float:
        """The first launch may have to read the whole game from disk."""
        return self._config.limits.launch_s * (2 if self.stats.launches == 0 else 1)

    def _reset(self, seat: Seat) -> None:
        assert seat.ticket is not None
        limits = self._config.limits
        deadline = Deadline.after(limits.create_join_s + limits.reset_s + _BACKSTOP_S)
        seat.instance.reset(seat.ticket, seat.attributes, deadline)

    def _next_wake_s(self) -> float:
        """When the next deadline or delayed launch is due; an hour from now where none is."""
        times = [time.monotonic() + 3600.0]
        for seat in self.seats:
            times.append(seat.instance.deadline.instant_s)
            if seat.instance.state is State.NEW and seat.instance.hello is not None:
                times.append(seat.launch_not_before_s)
        return min(times)


_RESETTABLE = frozenset({State.IDLE, State.READY, State.PLAYING, State.OVER})
_AWAITED = frozenset({State.STEPPING, State.RESETTING})
