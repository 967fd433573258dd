"""Keeps one live instance on every seat, and brings each to the ticket it is to play.

    doorbells, messages, ends of file, deadlines, verdicts ─► supervisor ─► launch, reset, replace

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
from multiprocessing.connection import wait as wait_readable
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import Fault, FaultKind, SC2PoolError
from sc2pool.pool import messages
from sc2pool.pool.aftermath import Aftermath
from sc2pool.pool.channel import ChannelClosedError
from sc2pool.pool.logs import log_instance, log_launch
from sc2pool.pool.metrics import MetricsServer
from sc2pool.pool.replays import ReplayFolder
from sc2pool.pool.roster import Roster
from sc2pool.pool.seats import Seat
from sc2pool.pool.slot import HELD, NOT_HELD, TELLING, TERMINATED, TRUNCATED
from sc2pool.pool.snapshot import Publisher, describe
from sc2pool.pool.states import AWAITED, Event, State
from sc2pool.pool.stats import Stats
from sc2pool.pool.waiter import Waiter
from sc2pool.pool.watchdog import Watchdog
from sc2pool.tasks.player import Ticket

_CLOSE_GRACE_S = 2.0
_HEARING_S = 1.0
"""Where an env's code raised, the others may tell for so long whether theirs did too."""
_LOOK_AGAIN_S = 0.01
_STALL_S = 1.0
"""A deadline that is seen this late has passed while nobody looked."""
_LOOK_INTERVAL_S = 0.02
"""So often at least, while steps are taken, all else is seen to: spares, messages, verdicts."""
_SLOW_FACTOR = 3.0
"""A slow but living game may stretch a step to this many times its limit."""


class Supervisor:
    """Owner of all instances of a pool.

    Args:
        specs: a pickled `PlayerSpec` for each env.
        spares: how many more instances of the first player to keep.
        config: limits and policies.
    """

    def __init__(self, specs: Sequence[bytes], spares: int, config: PoolConfig) -> None:
        self._config = config
        self._owner_pid = os.getpid()
        self.replays = None if config.replays is None else ReplayFolder(config.replays)
        self._next_look_s = 0.0
        self.news: list[Seat] = []
        """Seats that have replied, become ready or failed since someone cleared the list."""
        self.answers: dict[int, messages.Answer] = {}
        """To calls, by their numbers, until someone takes them."""
        self.stats = Stats()
        self.cannot_hold = False
        """Games in real time cannot be held, so spares would miss their first loops."""
        self.failure: SC2PoolError | None = None
        self.raised: list[tuple[Seat, messages.Raised]] = []
        self.closed = False
        self._handlers: dict[type, Callable[[Seat, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Launched: self._on_launched,
            messages.Aside: self._on_aside,
            messages.Answer: self._on_answer,
            messages.Paused: self._on_paused,
            messages.WentOn: self._on_went_on,
            messages.NotHeld: self._on_not_held,
            messages.Faulted: self._on_faulted,
            messages.Raised: self._on_raised,
        }
        self._waiter = Waiter()
        self._metrics: MetricsServer | None = None
        with ExitStack() as owned:  # gives back what there is, wherever Ctrl-C strikes
            owned.callback(self._waiter.close)
            self.roster = Roster(specs, spares, config.limits, self._waiter)
            owned.callback(self.roster.close)
            self._all = self.roster.seats
            self.seats = self._all[: len(specs)]
            self.spare_seats = self._all[len(specs) :]
            self._aftermath = Aftermath(
                config, self.roster, self.stats, self.replays, len(self.seats)
            )
            self.watchdog = Watchdog(
                self.roster.watched,
                config.recycle,
                config.watchdog_interval_s,
                Publisher(self.stats, self.roster).after_look,
            )
            owned.callback(self.watchdog.close)
            self._waiter.add(self.watchdog.bell.listening, None)
            owned.pop_all()

    # What the pool asks for.

    def stats_now(self) -> dict[str, Any]:
        """See `Pool.stats`."""
        told = describe(self.stats, self.roster, self.watchdog.samples())
        return {**told, "watchdog_cpu_s": self.watchdog.cpu_s}

    def serve_metrics(self) -> None:
        """Tell Prometheus, where that is wanted, until `close`."""
        config = self._config
        if config.metrics_port is not None:
            self._metrics = MetricsServer(self.stats_now, config.metrics_host, config.metrics_port)

    def play(self, seat: Seat, ticket: Ticket) -> None:
        """Bring the seat to this ticket's first observation, as soon as its instance can."""
        seat.ticket = ticket
        if seat.instance.state is State.PAUSED:
            self.let_go_on(seat)
            return
        seat.held = False
        if seat.instance.state in _RESETTABLE:
            self._reset(seat)

    def recycle_if_due(self, seat: Seat) -> None:
        """Replace an instance whose episode is over and that has reached a soft limit."""
        instance = seat.instance
        if instance.state is not State.OVER:
            return  # a new one, in place of one that died
        cause = instance.soft_limit_reached(self._config.recycle)
        if cause is None:
            return
        log_instance(logging.INFO, seat, instance.phase(), "recycled for its %s", cause)
        self.stats.count_recycle(seat.name, instance.number, cause)
        instance.on(Event.RECYCLE)
        self.roster.replace(seat)

    def step_deadline(self) -> Deadline:
        """Until when a step sent now must be answered."""
        limits = self._config.limits
        return Deadline.after(_SLOW_FACTOR * limits.step_s + limits.worker_grace_s)

    def pause_deadline(self) -> Deadline:
        """Until when a game that is told so now must have stopped, or must go on."""
        limits = self._config.limits
        return Deadline.after(limits.step_s + limits.worker_grace_s)

    def let_go_on(self, seat: Seat) -> None:
        """Let the game go on, if it is paused; that it does is news."""
        instance = seat.instance
        if instance.state is State.PAUSED:
            instance.go_on(self.pause_deadline())
        elif seat.held and instance.state is State.IDLE and seat.ticket is not None:
            self._reset(seat)
        seat.held = False

    def await_plain_replies(self, seats: Sequence[Seat]) -> bool:
        """Wait, as cheaply as can be, for these seats' replies to their steps.

        Returns:
            Whether all are there, and are an observation and a reward each and no more to tell, as
            nearly all are. Else they are as they were: `wait_until` sees to whatever has happened.
        """
        if time.monotonic() >= self._next_look_s:
            self.wait_until(lambda: True)
        for seat in reversed(seats):  # the last one asked: it will mostly be the last to answer
            instance = seat.instance
            if instance.state is not State.STEPPING:
                return False
            while not instance.end.replied():
                if not self._waiter.wait_for(instance.reply_bell, _LOOK_INTERVAL_S):
                    return False
        if any(seat.instance.end.flags() & TELLING for seat in seats):
            return False
        for seat in seats:
            seat.source = instance = seat.instance
            instance.plain_reply()
        return True

    def wait_until(self, condition: Callable[[], bool], deadline: Deadline = NEVER) -> None:
        """Handle what happens until `condition()` holds, or the deadline has passed.

        Raises:
            SC2PoolError: what ends the pool; all instances are gone then.
        """
        for seat in self._all:  # rings that were not waited for, or whose wait was interrupted
            self._on_ring(seat)
        if time.monotonic() >= self._next_look_s:
            self.roster.launch_next()
            self._look(0.0)
        plan = True
        wake_s = 0.0
        while not condition() and not deadline.expired():
            if plan:
                self.roster.launch_next()
                wake_s = min(self.roster.next_wake_s(), deadline.instant_s)
            plan = self._look(wake_s)

    def _look(self, until_s: float) -> bool:
        """Wait until something happens, at the latest until then, and see to it.

        Returns:
            Whether it was anything but replies.
        """
        ready = self._waiter.wait(max(0.0, until_s - time.monotonic()))
        plan = not ready
        for tag in ready:
            if tag is None:
                self._on_verdicts()
                plan = True
                continue
            instance, is_bell = tag
            seat = instance.seat
            if seat.instance is not instance:
                continue  # replaced while this batch of events was handled
            if is_bell:
                self._on_ring(seat)
            else:
                plan = True
                self._on_readable(seat)
        self._next_look_s = time.monotonic() + _LOOK_INTERVAL_S
        if not ready:
            self._check_deadlines()
        if self.failure is not None:
            if self.raised:
                self._hear_the_others()
            self.roster.end_all()
            raise self.failure
        return plan

    def close(self, *, ask_first: bool, grace_s: float = _CLOSE_GRACE_S) -> None:
        """End all instances; with `ask_first`, players may close by themselves for `grace_s`."""
        if self.closed:
            return
        self.closed = True
        if os.getpid() != self._owner_pid:
            return  # a forked child's copy: everything here is its parent's
        with ExitStack() as closing:  # a second Ctrl-C cuts the grace short, and nothing else
            closing.callback(self._waiter.close)
            if self._metrics is not None:
                closing.callback(self._metrics.close)
            closing.callback(self.roster.close)
            closing.callback(self.watchdog.close)  # until then it writes into the run's folder
            if ask_first and self.failure is None:
                self.roster.ask_to_close(Deadline.after(grace_s))

    # What happens.

    def _on_ring(self, seat: Seat) -> None:
        instance = seat.instance
        state = instance.state
        if state not in AWAITED:
            return
        flags = instance.reply_flags()
        if flags is None:
            return
        instance.deadline = NEVER
        seat.source = instance
        self.news.append(seat)
        if state is State.STEPPING:
            seat.answered = True
            over = flags & (TERMINATED | TRUNCATED) != 0
            instance.episodes += over
            instance.on(Event.EPISODE_OVER if over else Event.REPLY)
            return
        instance.on(Event.FIRST_OBSERVATION)
        now_s = time.monotonic()
        instance.rung = instance.end.rung()
        self.stats.count_reset(instance.rung, now_s - instance.asked_at_s)
        if seat.down_since_s is not None:
            self.stats.count_recovery(now_s - seat.down_since_s)
            seat.down_since_s = None
        if flags & HELD:
            instance.was_held()
            if not (seat.is_spare or seat.waits or seat.held):
                self.let_go_on(seat)  # an env has taken it before it was ready
        self.cannot_hold = self.cannot_hold or flags & NOT_HELD != 0

    def _on_readable(self, seat: Seat) -> None:
        instance = seat.instance
        try:
            received = instance.channel.receive()
        except ChannelClosedError:
            self._fault(seat, instance.exit_fault())
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
        self.roster.launched(seat.instance)
        self.stats.count_launch(message.facts)
        log_launch(seat)
        if seat.ticket is not None and not seat.held:
            self._reset(seat)

    def _on_aside(self, seat: Seat, message: messages.Aside) -> None:
        seat.instance.take_aside(message)
        self._on_ring(seat)

    def _on_answer(self, _: Seat, message: messages.Answer) -> None:
        self.answers[message.number] = message

    def _on_paused(self, seat: Seat, message: messages.Paused) -> None:
        seat.instance.deadline = NEVER
        seat.instance.at_rest = message

    def _on_went_on(self, seat: Seat, message: messages.WentOn) -> None:
        instance = seat.instance
        if instance.held:
            if instance.was_spare:
                self.stats.ticks.note_hold(message.loops)
        else:
            self.stats.count_pause(time.monotonic() - instance.paused_at_s, message.loops)
        instance.went_on()
        if seat.ticket is not None and seat.ticket is not instance.ticket:
            self._reset(seat)  # while it was paused another one was wanted
        self.news.append(seat)  # or an env waits for this spare

    def _on_not_held(self, seat: Seat, message: messages.NotHeld) -> None:
        if self.stats.ticks.note_problem(message.problem):
            words = "cannot be held at its first observation, so the pool has no spares: %s"
            log_instance(logging.WARNING, seat, seat.instance.phase(), words, message.problem)

    def _on_faulted(self, seat: Seat, message: messages.Faulted) -> None:
        self._fault(seat, message.fault, message.evidence)

    def _on_raised(self, seat: Seat, message: messages.Raised) -> None:
        self.raised.append((seat, message))
        self.failure = self._aftermath.of_raised(seat, message)

    def _hear_the_others(self) -> None:
        """An error in one env is often one in all: note what else is raised in this step."""
        deadline = Deadline.after(_HEARING_S)
        told = {seat.index for seat, _ in self.raised}
        for seat in self._all:
            instance = seat.instance
            while (
                seat.index not in told
                and instance.state in AWAITED
                and not instance.replied()
                and not deadline.expired()
            ):
                if not wait_readable([instance.channel.fileno()], _LOOK_AGAIN_S):
                    continue
                try:
                    received = instance.channel.receive()
                except ChannelClosedError:
                    break
                for message in received:
                    if isinstance(message, messages.Raised):
                        told.add(seat.index)
                    if isinstance(message, messages.Raised | messages.Aside):
                        self._handlers[type(message)](seat, message)

    def _on_verdicts(self) -> None:
        self.watchdog.bell.quiet()
        verdicts = {verdict.instance: verdict for verdict in self.watchdog.verdicts()}
        for seat in self._all:
            instance = seat.instance
            verdict = verdicts.get(instance.number)
            if verdict is None:
                continue
            if verdict.kind is None:
                instance.soft_limit = verdict.detail
                continue
            # What it is accused of may be over: an answer that has come clears it of hanging.
            self._on_ring(seat)
            if verdict.kind is not FaultKind.HUNG or instance.state in AWAITED:
                self._fault(seat, Fault(verdict.kind, instance.phase(), verdict.detail))

    def _check_deadlines(self) -> None:
        for seat in self._all:
            instance = seat.instance
            if not instance.deadline.expired():
                continue
            # The answer may be there although its ring was not seen: look once more.
            self._on_ring(seat)
            if not instance.deadline.expired():
                continue
            if time.monotonic() - instance.deadline.instant_s > _STALL_S:
                # We are late to look: this process was stopped (Ctrl-Z, a closed lid) or busy, and
                # so may the worker have been, or it was asked only now.
                instance.deadline = Deadline.after(self._config.limits.worker_grace_s)
                continue
            detail = f"the worker did not answer in time in state {instance.state}"
            self._fault(seat, Fault(FaultKind.DEADLINE, instance.phase(), detail))

    def _fault(self, seat: Seat, fault: Fault, evidence: messages.Evidence | None = None) -> None:
        self.news.append(seat)
        self.failure = self._aftermath.of_fault(seat, fault, evidence) or self.failure

    def _reset(self, seat: Seat) -> None:
        assert seat.ticket is not None
        limits = self._config.limits
        deadline = Deadline.after(limits.create_join_s + limits.reset_s + limits.worker_grace_s)
        hold = (seat.is_spare or seat.waits) and not self.cannot_hold
        seat.instance.was_spare = seat.is_spare
        seat.instance.reset(seat.ticket, seat.attributes, deadline, hold=hold)


_RESETTABLE = frozenset({State.IDLE, State.RESETTING, State.READY, State.PLAYING, State.OVER})
