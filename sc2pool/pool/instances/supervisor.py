"""Reacts to instances: to replies and messages, and to replies that do not come in time.

The supervisor also handles the watchdog's verdicts. No function of this module waits. If an
instance fails in any way, the supervisor ends it, and its seat gets a new instance for the same
episode. An error of the user's code, a set-up error or too many failures end the pool, because a
new instance would not help. The waiting call raises the pool's error, which is stored in `failure`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, Fault, FaultKind, Phase, SC2PoolError
from sc2pool.game.hang_detection import SLOW_FACTOR
from sc2pool.pool import messages
from sc2pool.pool.instances.fleet import Fleet
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.recovery import Recovery
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED, RESETTABLE, STOPPED, Event, State
from sc2pool.pool.ipc import ChannelClosedError, describe
from sc2pool.pool.queues.slots import Flag
from sc2pool.pool.report.logs import log_instance, log_launch
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.statistics import Counters
from sc2pool.pool.watchdog import Verdict
from sc2pool.processes.spawn import is_shortage
from sc2pool.tasks.player import Episode

_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class Listener:
    """Callbacks for events of the envs' steps; this base class ignores them."""

    def replied(self, seat: Seat, flags: int) -> None:
        """The seat's instance has answered a step; the reply is in its queue."""

    def arrived(self, seat: Seat) -> None:
        """The seat's first observation has arrived; the game may be stopped at it (held)."""

    def failed(self, seat: Seat) -> None:
        """The seat's instance has died (`seat.fault` says why), and was replaced."""


def read(instance: Instance) -> list[Any]:
    """The instance's messages; a message that cannot be unpickled is replaced by a `Raised`."""
    try:
        return instance.channel.receive()
    except ChannelClosedError:
        raise
    except Exception as error:
        return [describe(error, "its message was unpickled")]


class Supervisor:
    """Brings each seat of a pool to its episode, and replaces failed instances.

    Attributes:
        answers: the answers to calls, by the number of the call, until the caller takes them.
        cannot_hold: whether real-time games cannot be held; spares are not used in this case,
            because their games would continue without a player.
        failure: the error that ends the pool, until the waiting call raises it; after that it is
            dropped, because its traceback would keep the pool from being collected and closed.
        failed: the text of the failure; empty if the pool has not failed.
        raised: the errors of the user's code, each with its seat.
    """

    def __init__(
        self, config: PoolConfig, fleet: Fleet, n_envs: int, replays: ReplayFolder | None
    ) -> None:
        self._config = config
        self.fleet = fleet
        self.seats = fleet.seats
        self.env_seats = fleet.seats[:n_envs]
        self.spare_seats = fleet.seats[n_envs:]
        self._replays = replays
        self.stats = Counters()
        self._recovery = Recovery(config, fleet, self.stats, replays, n_envs)
        self.listener = Listener()
        self.answers: dict[int, messages.Answer] = {}
        self.cannot_hold = False
        self.failure: SC2PoolError | None = None
        self.failed = ""
        self.raised: list[tuple[Seat, messages.Raised]] = []
        self._warned: set[str] = set()
        """The texts of all logged warnings, without their digits."""
        self._handlers: dict[type, Callable[[Seat, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Launched: self._on_launched,
            messages.OutOfBand: self._on_out_of_band,
            messages.Answer: self._on_answer,
            messages.Paused: self._on_paused,
            messages.Resumed: self._on_resumed,
            messages.NotHeld: self._on_not_held,
            messages.Warned: self._on_warned,
            messages.Faulted: self._on_faulted,
            messages.Raised: self._on_raised,
        }

    # The methods below serve requests that come from the pool.

    def play(self, seat: Seat, episode: Episode) -> None:
        """Bring the seat to this episode's first observation, as soon as the instance can."""
        seat.dealt(episode)
        if seat.instance.state in RESETTABLE:
            self._reset(seat)
        else:
            self.resume(seat)  # a stopped game must resume before its reset

    def recycle_if_due(self, seat: Seat) -> None:
        """Replace the seat's instance before its next episode, if it has reached a soft limit."""
        instance = seat.instance
        if instance.state not in (State.OVER, State.PLAYING):
            return  # this is a new instance, because its predecessor has died
        cause = instance.recycle_due(self._config.recycle)
        if cause is None:
            return
        level, words = logging.INFO, "recycled for its %s"
        if cause == "memory" and instance.episodes == 1:
            level = logging.WARNING
            words += (
                " after one episode; if an episode needs that much, raise the soft limits of "
                "PoolConfig(recycle=RecyclePolicy(…))"
            )
        log_instance(level, seat.name, instance.number, instance.phase(), words, cause)
        self.stats.count_recycle(seat.name, instance.number, cause)
        instance.on(Event.RECYCLE)
        self.fleet.replace(seat, gently=not instance.games)  # an env of the user is closed first

    def pause(self, seat: Seat) -> None:
        """Stop the seat's game if it waits for an action or is at its first observation."""
        if seat.instance.state in (State.READY, State.PLAYING):
            seat.instance.pause(self._pause_deadline())

    def resume(self, seat: Seat) -> None:
        """Resume the seat's game if it is stopped; begin an episode that a pause has postponed."""
        instance = seat.instance
        was_paused = seat.pause_over()
        if instance.state in STOPPED:
            if instance.state not in (State.RESUMING, State.RELEASING):
                instance.resume(self._pause_deadline())
        elif was_paused and instance.state is State.IDLE and seat.episode is not None:
            self._reset(seat)

    def _reset(self, seat: Seat) -> None:
        assert seat.episode is not None
        limits = self._config.limits
        # The worker waits up to `SLOW_FACTOR` times each limit for a game that is slow but works.
        its_limits_s = SLOW_FACTOR * (limits.create_join_s + limits.reset_s)
        deadline = Deadline.after(its_limits_s + limits.worker_grace_s)
        hold = (seat.is_spare or seat.hold) and not self.cannot_hold
        seat.instance.reset(
            seat.episode, seat.attributes, deadline, hold=hold, of_spare=seat.is_spare
        )

    def step_deadline(self, sent_at_s: float) -> Deadline:
        """The time by which a step that was sent at `sent_at_s` must be answered."""
        limits = self._config.limits
        return Deadline(sent_at_s + SLOW_FACTOR * limits.step_s + limits.worker_grace_s)

    def _pause_deadline(self) -> Deadline:
        limits = self._config.limits
        return Deadline.after(limits.step_s + limits.worker_grace_s)

    def keep_replay(self, seat: Seat, info: dict[str, Any]) -> None:
        """Store the replay in an episode's last info, if replays are configured."""
        if self._replays is not None:
            self._replays.settle(seat.name, info)

    def forget(self) -> None:
        """Drop the answers of the old instances, because every instance is about to be replaced."""
        self.answers.clear()

    # Events.

    def start(self, seat: Seat) -> None:
        """Start the worker of the seat's instance."""
        refusal = self.fleet.start(seat.instance)
        if refusal is not None:
            detail = f"the worker cannot be started: {refusal}"
            refused = is_shortage(refusal)
            self._fault(seat, Fault(FaultKind.SPAWN_FAILED, Phase.LAUNCHING, detail, refused))

    def check_replies(self, seat: Seat) -> bool:
        """Handle the reply of the seat's instance, if any; True if it was a first observation."""
        instance = seat.instance
        if instance.state not in AWAITED:
            return False
        flags = instance.queue.reply()
        if flags is None:
            return False
        if instance.state is State.STEPPING:
            over = flags & (Flag.TERMINATED | Flag.TRUNCATED) != 0
            instance.end_step(Event.EPISODE_OVER if over else Event.REPLY)
            self.listener.replied(seat, flags)
            return False
        self._on_first_observation(seat, flags)
        return True

    def _on_first_observation(self, seat: Seat, flags: int) -> None:
        instance = seat.instance
        held = flags & Flag.HELD != 0
        took_s = instance.began(held=held)
        self.stats.count_reset(instance.reset_kind, took_s)
        recovery_s = seat.arrived_at(time.monotonic())
        if recovery_s is not None:
            self.stats.count_recovery(recovery_s)
        self.cannot_hold = self.cannot_hold or flags & Flag.NOT_HELD != 0
        if held and not (seat.is_spare or seat.hold or seat.paused):
            self.resume(seat)  # an env has taken this spare before its reset was done
        self.listener.arrived(seat)

    def receive(self, seat: Seat) -> None:
        """Handle messages on the channel of the seat's instance, or the channel's end."""
        instance = seat.instance
        if not instance.live:
            return  # the instance has ended and was not replaced
        try:
            received = read(instance)
        except ChannelClosedError:
            self.check_replies(seat)  # the instance may have replied before it ended
            self._fault(seat, instance.exit_fault(), of_worker=True)
            return
        for message in received:
            self.handle(seat, message)
            if seat.instance is not instance or not instance.live:
                return

    def handle(self, seat: Seat, message: Any) -> None:
        """Handle a message of the seat's instance."""
        self._handlers[type(message)](seat, message)

    def _on_hello(self, seat: Seat, message: messages.Hello) -> None:
        seat.instance.greeted(message)
        if self.fleet.slots.is_fitted:  # else `attach_all` attaches the instance later
            self._attach(seat)

    def attach_all(self) -> None:
        """Give a slot to each instance that has sent its `Hello`; the slots' size is known now."""
        for seat in self.seats:
            if seat.instance.live and seat.instance.hello is not None:
                self._attach(seat)

    def _attach(self, seat: Seat) -> None:
        try:
            seat.instance.attach()
        except ConfigError as error:
            self._fail(ConfigError(f"{seat.name}: {error}"))

    def _on_launched(self, seat: Seat, message: messages.Launched) -> None:
        instance = seat.instance
        instance.launched(message.games)
        self.fleet.launched(instance)
        self.stats.count_launch(seat.name, instance.number, message.games)
        log_launch(seat.name, instance.number, message.games)
        if seat.episode is not None and not seat.paused:
            self._reset(seat)

    def _on_out_of_band(self, seat: Seat, message: messages.OutOfBand) -> None:
        try:
            seat.instance.queue.deliver(message)
        except Exception as error:
            self._on_raised(seat, describe(error, "its info was unpickled"))
            return
        self.check_replies(seat)

    def _on_answer(self, seat: Seat, message: messages.Answer) -> None:
        self.answers[message.number] = message
        seat.instance.answered()

    def _on_paused(self, seat: Seat, message: messages.Paused) -> None:
        seat.instance.paused(message.problem)

    def _on_resumed(self, seat: Seat, message: messages.Resumed) -> None:
        instance = seat.instance
        if instance.state is State.RELEASING and instance.holds:
            if instance.was_spare:
                self.stats.lateness.note_hold(message.loops)
        else:
            self.stats.count_pause(time.monotonic() - instance.stopped_at_s, message.loops)
        instance.resumed()
        if seat.episode is not None and seat.episode is not instance.episode:
            self._reset(seat)  # another episode was requested while the game was stopped
        elif instance.state is State.READY:
            self.listener.arrived(seat)

    def _on_not_held(self, seat: Seat, message: messages.NotHeld) -> None:
        if self.stats.lateness.note_problem(message.problem):
            words = "cannot be held at its first observation, so the pool has no spares: %s"
            about = (seat.name, seat.instance.number, seat.instance.phase())
            log_instance(logging.WARNING, *about, words, message.problem)

    def _on_warned(self, seat: Seat, message: messages.Warned) -> None:
        self._warn_once(seat, message.text)

    def _warn_once(self, seat: Seat, text: str) -> None:
        """Log a warning, unless the same text (apart from its digits) was logged before."""
        kind = text.translate(_WITHOUT_DIGITS)
        if kind not in self._warned:
            self._warned.add(kind)
            instance = seat.instance
            log_instance(logging.WARNING, seat.name, instance.number, instance.phase(), "%s", text)

    def _on_faulted(self, seat: Seat, message: messages.Faulted) -> None:
        self._fault(seat, message.fault, message.evidence)

    def _on_raised(self, seat: Seat, message: messages.Raised) -> None:
        self.raised.append((seat, message))
        self._fail(self._recovery.of_raised(seat, message))

    def _fail(self, failure: SC2PoolError) -> None:
        self.failure = failure
        self.failed = str(failure)

    def on_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Act on the watchdog's verdicts."""
        by_instance = {verdict.instance: verdict for verdict in verdicts}
        for seat in self.seats:
            instance = seat.instance
            verdict = by_instance.get(instance.number)
            if verdict is None:
                continue
            if verdict.starved:
                instance.starved(self._config.limits.step_s)
                self._warn_once(seat, verdict.detail)
                continue
            if verdict.kind is None:
                instance.too_large(verdict.detail)
                if verdict.of_worker and instance.worker is not None:
                    instance.worker.use_up()
                continue
            self.check_replies(seat)  # the instance may have replied since the verdict
            if verdict.kind is not FaultKind.HUNG or instance.state in AWAITED:
                fault = Fault(verdict.kind, instance.phase(), verdict.detail)
                of_worker = verdict.of_worker or (
                    verdict.kind is FaultKind.HUNG and self._recovery.is_blocked(seat)
                )
                self._fault(seat, fault, of_worker=of_worker)

    def check_deadlines(self) -> None:
        """Report a fault of each instance whose deadline has passed without a reply.

        The fault is the worker's, because a working worker enforces its games' limits before the
        instance's deadline.
        """
        self.fleet.kill_hung_workers()
        grace_s = self._config.limits.worker_grace_s
        for seat in self.seats:
            instance = seat.instance
            if instance.deadline.expired():
                self.check_replies(seat)  # the reply may be in the slot although no ring came
            instance.extend_stalled_deadlines(grace_s)
            if instance.deadline.expired():
                detail = f"the worker did not answer in time in state {instance.state}"
            elif instance.call_deadline.expired():
                detail = "the worker did not answer a call in time"
            else:
                continue
            fault = Fault(FaultKind.DEADLINE, instance.phase(), detail)
            self._fault(seat, fault, of_worker=True)

    def _fault(
        self,
        seat: Seat,
        fault: Fault,
        evidence: messages.Evidence | None = None,
        *,
        of_worker: bool = False,
    ) -> None:
        if not seat.instance.live:
            return  # the instance has already failed for good
        failure = self._recovery.of_fault(seat, fault, evidence, of_worker=of_worker)
        if failure is not None:
            self._fail(failure)
        self.listener.failed(seat)
