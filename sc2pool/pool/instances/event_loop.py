"""Waits for events of a pool's instances, and passes them to the supervisor.

The events are doorbell rings, messages, ends of file, deadlines and the watchdog's verdicts.
The event loop acts only while the trainer's thread waits in it. Between the trainer's calls the
instances work by themselves. Every wait has a deadline. If the pool fails, all instances end and
the waiting call raises the error.

An interrupt (Ctrl-C in a notebook) may come between any two instructions of the trainer's thread.
An interrupt does no harm while the trainer waits or between its calls, because the pool's records
are whole at these times. The records change only inside a `Bookkeeping` block. An interrupt inside
a block leaves the records torn (half updated), and every instance must then be replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.error import Error as GymnasiumError

from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import ClosedError, ForkedPoolError, InterruptedCallError, SC2PoolError
from sc2pool.pool import messages
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.states import AWAITED
from sc2pool.pool.instances.supervisor import Supervisor, read
from sc2pool.pool.instances.workers import Hosting, Worker
from sc2pool.pool.ipc import ChannelClosedError
from sc2pool.pool.queues.doorbell import Waiter
from sc2pool.pool.queues.layout import SlotLayout
from sc2pool.pool.watchdog import Watchdog

_HEARING_S = 1.0
"""How long to collect the errors of other envs after the code of one env has raised an error."""
_RETRY_INTERVAL_S = 0.01
_POLL_INTERVAL_S = 0.02
"""How often to handle spares, messages and verdicts while all replies are plain."""


class EventLoop:
    """Waits for a pool's instances; all code that changes the pool's records uses `bookkeeping`."""

    def __init__(self, waiter: Waiter, watchdog: Watchdog, supervisor: Supervisor) -> None:
        self._waiter = waiter
        self._watchdog = watchdog
        self.supervisor = supervisor
        self.fleet = supervisor.fleet
        self.bookkeeping = Bookkeeping(supervisor)
        self._next_poll_s = 0.0
        self._plans = True
        """True if the next deadline, or the set of instances to start now, may have changed."""

    def wait_until(
        self,
        condition: Callable[[], bool],
        deadline: Deadline = NEVER,
        advance: Callable[[], bool] | None = None,
    ) -> None:
        """Handle events until the condition holds, or the deadline has passed.

        The condition must have no side effects. Before each check of the condition, `advance` makes
        the requests that have become possible, and returns True if deadlines may have changed.
        Raises ClosedError if another thread has closed the pool, and SC2PoolError if the pool has
        failed.
        """
        with self.bookkeeping:
            for seat in self.supervisor.seats:  # a reply may be unread even if its ring was read
                self.supervisor.check_replies(seat)
            if time.monotonic() >= self._next_poll_s:
                self._begin_what_is_due()
                self._poll(0.0)
            self._plans = True
            wake_s = 0.0
            while True:
                if advance is not None and advance():
                    self._plans = True
                if condition() or deadline.expired():
                    return
                if self._plans:
                    self._plans = False
                    self._begin_what_is_due()
                    wake_s = min(self.fleet.next_wake_s(), deadline.instant_s)
                self._poll(wake_s)

    def _begin_what_is_due(self) -> None:
        """Start the workers and games whose time to start has come."""
        for seat in self.fleet.due():
            self.supervisor.start(seat)
        self._raise_failure()
        self.fleet.launch_next()

    def wait_for_hellos(self) -> list[messages.Hello]:
        """Wait until every env's player has sent its `Hello` message, and one game has started."""

        def hellos() -> list[messages.Hello]:
            said = [seat.instance.hello for seat in self.supervisor.env_seats]
            return [hello for hello in said if hello is not None]

        supervisor = self.supervisor
        n_envs = len(supervisor.env_seats)
        self.wait_until(lambda: len(hellos()) == n_envs and supervisor.stats.launches > 0)
        return hellos()

    def fit_slots(self, layout: SlotLayout) -> None:
        """Size the shared memory for the spaces on which all players agree.

        Raises ConfigError if memory is short, or if the layouts of two players' spaces differ.
        """
        with self.bookkeeping:
            self.fleet.slots.fit(layout)
            self.supervisor.attach_all()
            self._raise_failure()

    def look_for_more(self) -> bool:
        """True if a poll is due and `wait_until` must handle more than replies."""
        now_s = time.monotonic()
        if now_s < self._next_poll_s:
            return False
        if self._waiter.has_more() or not self.fleet.all_at_rest():
            return True
        self._next_poll_s = now_s + _POLL_INTERVAL_S
        return False

    def wait_for_ring(self, instance: Instance) -> bool:
        """Wait for the doorbell of this instance's worker, as cheaply as possible.

        If the result is False (another event happened or a poll is due), call `wait_until`.
        """
        assert instance.worker is not None, "an action was sent there"
        return self._waiter.wait_for(instance.worker.reply_doorbell, _POLL_INTERVAL_S)

    def _poll(self, until_s: float) -> None:
        """Wait for events, at the latest until the monotonic time `until_s`, and handle them."""
        supervisor = self.supervisor
        timeout_s = max(0.0, until_s - time.monotonic())
        self.bookkeeping.torn = False
        ready = self._waiter.wait(timeout_s)
        self.bookkeeping.torn = True
        if self.bookkeeping.closed:
            raise ClosedError("another thread has closed the pool during this call")
        self._raise_what_came()
        self._plans |= not ready
        for tag in ready:
            if isinstance(tag, Worker):
                for seat in supervisor.seats:
                    if seat.instance.worker is tag:
                        self._plans |= supervisor.check_replies(seat)
                continue
            self._plans = True
            if tag is None:
                self._watchdog.doorbell.quiet()
                supervisor.on_verdicts(self._watchdog.verdicts())
                continue
            if isinstance(tag, Hosting):
                self.fleet.remove_departed(tag.worker)
                continue
            seat_of_channel = self.fleet.seat_of(tag)
            if seat_of_channel is not None:  # None if an earlier event has replaced the instance
                supervisor.receive(seat_of_channel)
        self._next_poll_s = time.monotonic() + _POLL_INTERVAL_S
        if not ready:
            supervisor.check_deadlines()
        self._raise_failure()

    def _raise_what_came(self) -> None:
        """If the user's code raised an error in the wait, raise it; the records then stay torn."""
        raised = self._waiter.take_raised()
        if raised is None:
            return
        error, instance = raised
        seat = self.fleet.seat_of(instance)
        if seat is not None:
            error.add_note(f"{seat.name}: raised while {instance.phase()}")
        try:
            raise error
        finally:
            del error, raised  # break a cycle: the error's traceback refers to this frame

    def _raise_failure(self) -> None:
        failure = self.supervisor.failure
        if failure is None:
            return
        if self.supervisor.raised:
            self._hear_the_others()
        self.fleet.end_all()
        self.supervisor.failure = None
        try:
            raise failure
        finally:
            del failure  # break a cycle: the error's traceback refers to this frame

    def _hear_the_others(self) -> None:
        """Collect the errors of the other envs in this step: a bug often affects every env."""
        deadline = Deadline.after(_HEARING_S)
        heard = {seat.index for seat, _ in self.supervisor.raised}
        for seat in self.supervisor.seats:
            instance = seat.instance
            while (
                seat.index not in heard
                and instance.state in AWAITED
                and instance.queue.reply() is None
                and not deadline.expired()
            ):
                if not instance.channel.readable(_RETRY_INTERVAL_S):
                    continue
                try:
                    received = read(instance)
                except ChannelClosedError:
                    break
                for message in received:
                    if isinstance(message, messages.Raised):
                        heard.add(seat.index)
                    if isinstance(message, messages.Raised | messages.OutOfBand):
                        self.supervisor.handle(seat, message)

    def stop(self) -> None:
        """Make every later wait raise `ClosedError`; call `wake` to end a present wait."""
        self.bookkeeping.closed = True

    def wake(self) -> None:
        """Wake another thread if it waits in this event loop."""
        self._watchdog.doorbell.ring()


class Bookkeeping:
    """A block of code (`with`) in which the pool's records may change.

    `torn` is True inside a block. `torn` stays True if the block raises an error that is not in
    `_OURS`. The outermost block first calls `bring_up_to_date`, because plain steps do not update
    records.
    """

    _OURS = (
        SC2PoolError,
        GymnasiumError,
        AlreadyPendingCallError,
        NoAsyncCallError,
        multiprocessing.TimeoutError,
    )
    """Errors that the pool raises itself while its records are whole."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._owner_pid = os.getpid()
        self.bring_up_to_date: Callable[[], None] = lambda: None
        self.torn = False
        self.closed = False
        self._depth = 0
        self._thread = 0

    def __enter__(self) -> None:
        if not self._depth:
            self.check_whole()
            self._thread = threading.get_ident()
            self.torn = True
            self.bring_up_to_date()
        self.torn = True
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        if kind is None or issubclass(kind, self._OURS):
            self.torn = False
        elif self.closed and issubclass(kind, Exception):
            raise ClosedError("a signal handler or another thread has closed the pool in this call")

    def check_usable(self) -> None:
        """Do both checks (`check_open`, `check_whole`) fast, because every step does them."""
        failed = self._supervisor.failed
        if self.torn or self.closed or failed or os.getpid() != self._owner_pid:
            self.check_open()
            self.check_whole()

    def check_open(self) -> None:
        """Raise ForkedPoolError in a forked process, or ClosedError if the pool has ended."""
        if os.getpid() != self._owner_pid:
            raise ForkedPoolError(
                f"this pool belongs to process {self._owner_pid}; process {os.getpid()} was forked "
                "from it and must make a pool of its own"
            )
        if self.closed:
            raise ClosedError("the pool is closed")
        if self._supervisor.failed:
            raise ClosedError(f"the pool has failed: {self._supervisor.failed}")

    def check_closed_meanwhile(self) -> None:
        """Raise ClosedError if a thread has closed the pool; used by calls without a block."""
        if self.closed:
            self.check_open()

    def check_whole(self) -> None:
        """Raise InterruptedCallError if an interrupt has left the records torn (half updated)."""
        if self.torn:
            raise InterruptedCallError(
                "another thread is in a call of this pool: one thread at a time"
                if self.in_another_thread()
                else "an interrupt has cut an earlier call short, or another thread is in a call: "
                "reset all envs first"
            )

    def in_another_thread(self) -> bool:
        """True if another thread is inside a block of this object."""
        return self._depth > 0 and self._thread != threading.get_ident()

    def begin_anew(self) -> None:
        """Mark the records as whole; call this after every instance was replaced."""
        self._depth = 0
        self.torn = False
