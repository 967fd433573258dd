"""What follows from what an instance says, or fails to say.

    reply, message, end of file, deadline, verdict ─► state, counters, news ─► reset, go on, replace

Rules: nothing here waits; an instance that fails in any way is disposed of, and its seat gets a new
one with the same episode; what no new instance can mend (the user's code, the set-up, too many
recycles) becomes `failure`, which whoever waits raises.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import Fault, FaultKind, SC2PoolError
from sc2pool.pool.instances.recovery import Recovery
from sc2pool.pool.instances.roster import Roster
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED, Event, State
from sc2pool.pool.instances.watchdog import Verdict
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import ChannelClosedError
from sc2pool.pool.ipc.slot import HELD, NOT_HELD, TERMINATED, TRUNCATED
from sc2pool.pool.report.logs import log_instance, log_launch
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.stats import Counters
from sc2pool.tasks.player import Episode

_STALL_S = 1.0
"""A deadline that is seen this late has passed while nobody looked."""
_SLOW_FACTOR = 3.0
"""A slow but living game may stretch a step to this many times its limit."""
_RESETTABLE = frozenset({State.IDLE, State.RESETTING, State.READY, State.PLAYING, State.OVER})


class Supervisor:
    """Keeps each seat of a pool on its way to its episode.

    Args:
        config: limits and policies.
        roster: the seats and their instances.
        n_envs: how many of the seats are envs'; the rest are spares'.
        replays: where replays go; None for nowhere.
    """

    def __init__(
        self, config: PoolConfig, roster: Roster, n_envs: int, replays: ReplayFolder | None
    ) -> None:
        self._config = config
        self.roster = roster
        self.all_seats = roster.seats
        self.seats = roster.seats[:n_envs]
        self.spare_seats = roster.seats[n_envs:]
        self.replays = replays
        self.stats = Counters()
        self._aftermath = Recovery(config, roster, self.stats, replays, n_envs)
        self.news: list[Seat] = []
        """Seats that have replied, become ready or failed since someone cleared the list."""
        self.answers: dict[int, messages.Answer] = {}
        """To calls, by their numbers, until someone takes them."""
        self.cannot_hold = False
        """Games in real time cannot be held, so spares would miss their first loops."""
        self.failure: SC2PoolError | None = None
        """What ends the pool."""
        self.raised: list[tuple[Seat, messages.Raised]] = []
        """What code of the user's has raised."""
        self._handlers: dict[type, Callable[[Seat, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Launched: self._on_launched,
            messages.OutOfBand: self._on_aside,
            messages.Answer: self._on_answer,
            messages.Paused: self._on_paused,
            messages.Resumed: self._on_went_on,
            messages.NotHeld: self._on_not_held,
            messages.Faulted: self._on_faulted,
            messages.Raised: self._on_raised,
        }

    # What is asked for.

    def play(self, seat: Seat, episode: Episode) -> None:
        """Bring the seat to this episode's first observation, as soon as its instance can."""
        seat.episode = episode
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
        words = "recycled for its %s"
        log_instance(logging.INFO, seat.name, instance.number, instance.phase(), words, cause)
        self.stats.count_recycle(seat.name, instance.number, cause)
        instance.on(Event.RECYCLE)
        self.roster.replace(seat)

    def let_go_on(self, seat: Seat) -> None:
        """Let the game go on, if it is paused; that it does is news."""
        instance = seat.instance
        if instance.state is State.PAUSED:
            instance.go_on(self.pause_deadline())
        elif seat.held and instance.state is State.IDLE and seat.episode is not None:
            self._reset(seat)
        seat.held = False

    def _reset(self, seat: Seat) -> None:
        assert seat.episode is not None
        limits = self._config.limits
        deadline = Deadline.after(limits.create_join_s + limits.reset_s + limits.worker_grace_s)
        hold = (seat.is_spare or seat.waits) and not self.cannot_hold
        seat.instance.was_spare = seat.is_spare
        seat.instance.reset(seat.episode, seat.attributes, deadline, hold=hold)

    def step_deadline(self) -> Deadline:
        """Until when a step sent now must be answered."""
        limits = self._config.limits
        return Deadline.after(_SLOW_FACTOR * limits.step_s + limits.worker_grace_s)

    def pause_deadline(self) -> Deadline:
        """Until when a game that is told so now must have stopped, or must go on."""
        limits = self._config.limits
        return Deadline.after(limits.step_s + limits.worker_grace_s)

    # What happens.

    def on_ring(self, seat: Seat) -> None:
        """An instance may have replied: look."""
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

    def on_readable(self, seat: Seat) -> None:
        """An instance has sent something on its channel, or has ended."""
        instance = seat.instance
        try:
            received = instance.channel.receive()
        except ChannelClosedError:
            self._fault(seat, instance.exit_fault())
            return
        for message in received:
            self.on_message(seat, message)
            if seat.instance is not instance:
                return

    def on_message(self, seat: Seat, message: Any) -> None:
        """An instance has sent something besides a reply to a step."""
        self._handlers[type(message)](seat, message)

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
        self.stats.count_launch(seat.name, seat.instance.number, message.facts)
        log_launch(seat.name, seat.instance.number, message.facts)
        if seat.episode is not None and not seat.held:
            self._reset(seat)

    def _on_aside(self, seat: Seat, message: messages.OutOfBand) -> None:
        seat.instance.take_aside(message)
        self.on_ring(seat)

    def _on_answer(self, _: Seat, message: messages.Answer) -> None:
        self.answers[message.number] = message

    def _on_paused(self, seat: Seat, message: messages.Paused) -> None:
        seat.instance.deadline = NEVER
        seat.instance.at_rest = message

    def _on_went_on(self, seat: Seat, message: messages.Resumed) -> None:
        instance = seat.instance
        if instance.held:
            if instance.was_spare:
                self.stats.ticks.note_hold(message.loops)
        else:
            self.stats.count_pause(time.monotonic() - instance.paused_at_s, message.loops)
        instance.went_on()
        if seat.episode is not None and seat.episode is not instance.episode:
            self._reset(seat)  # while it was paused another one was wanted
        self.news.append(seat)  # or an env waits for this spare

    def _on_not_held(self, seat: Seat, message: messages.NotHeld) -> None:
        if self.stats.ticks.note_problem(message.problem):
            words = "cannot be held at its first observation, so the pool has no spares: %s"
            about = (seat.name, seat.instance.number, seat.instance.phase())
            log_instance(logging.WARNING, *about, words, message.problem)

    def _on_faulted(self, seat: Seat, message: messages.Faulted) -> None:
        self._fault(seat, message.fault, message.evidence)

    def _on_raised(self, seat: Seat, message: messages.Raised) -> None:
        self.raised.append((seat, message))
        self.failure = self._aftermath.of_raised(seat, message)

    def on_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """The watchdog has decided something."""
        by_instance = {verdict.instance: verdict for verdict in verdicts}
        for seat in self.all_seats:
            instance = seat.instance
            verdict = by_instance.get(instance.number)
            if verdict is None:
                continue
            if verdict.kind is None:
                instance.soft_limit = verdict.detail
                continue
            # What it is accused of may be over: an answer that has come clears it of hanging.
            self.on_ring(seat)
            if verdict.kind is not FaultKind.HUNG or instance.state in AWAITED:
                self._fault(seat, Fault(verdict.kind, instance.phase(), verdict.detail))

    def check_deadlines(self) -> None:
        """Those whose time is over have failed, unless their answers are there."""
        for seat in self.all_seats:
            instance = seat.instance
            if not instance.deadline.expired():
                continue
            # The answer may be there although its ring was not seen: look once more.
            self.on_ring(seat)
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
