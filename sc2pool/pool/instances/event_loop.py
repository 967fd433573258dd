"""Waits for what happens to the instances of a pool, and passes it to the supervisor.

    doorbells, messages, ends of file, deadlines, verdicts ─► wait_until ─► `supervisor`

It acts only inside its waits, in the trainer's thread; between calls the instances go on by
themselves. Rules: every wait has a deadline; what ends the whole pool is raised by the waiting
call, and every instance is gone then.

An interrupt (Ctrl-C in a notebook) may strike between any two instructions of the trainer's thread.
While the trainer waits, and between its calls, the pool's records are whole, and an interrupt does
no harm. Rule: all changes are made inside a `Bookkeeping` block; an interrupt there leaves the
records torn, and nothing may be done with them then but to begin again with new instances.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.error import Error as GymnasiumError

from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import ClosedError, InterruptedCallError, SC2PoolError
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.states import AWAITED
from sc2pool.pool.instances.supervisor import Supervisor, read
from sc2pool.pool.instances.workers import Hosting, Worker
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import ChannelClosedError
from sc2pool.pool.machine.watchdog import Watchdog
from sc2pool.pool.queues.layout import SlotLayout
from sc2pool.pool.queues.waiter import Waiter

_HEARING_S = 1.0
"""How long other envs may still report their errors after one env's code has raised."""
_RETRY_INTERVAL_S = 0.01
_POLL_INTERVAL_S = 0.02
"""Interval for spares, messages and verdicts while nothing but plain replies come."""


class EventLoop:
    """Waits for the instances of a pool.

    Args:
        waiter: waits for the workers' doorbells and channels, and for the watchdog's doorbell.
        watchdog: its verdicts are passed on.
        supervisor: decides what follows from what happens.

    Attributes:
        bookkeeping: whether the records are whole; shared by all that change them.
    """

    def __init__(self, waiter: Waiter, watchdog: Watchdog, supervisor: Supervisor) -> None:
        self._waiter = waiter
        self._watchdog = watchdog
        self.supervisor = supervisor
        self.fleet = supervisor.fleet
        self.bookkeeping = Bookkeeping()
        self._next_poll_s = 0.0
        self._plans = True
        """True if what is due, and the next deadline, may be others than they were."""

    def wait_until(
        self,
        condition: Callable[[], bool],
        deadline: Deadline = NEVER,
        advance: Callable[[], bool] | None = None,
    ) -> None:
        """Handle what happens until `condition()` holds, or the deadline has passed.

        Args:
            condition: looks, and changes nothing.
            deadline: for this wait.
            advance: does what has become possible, before each look at the condition; returns
                whether it has asked an instance for something.

        Raises:
            ClosedError: another thread has closed the pool.
            SC2PoolError: what ends the pool; all instances are gone then.
        """
        with self.bookkeeping:
            for seat in self.supervisor.seats:  # rings of before, or whose wait was interrupted
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
        """Start workers and launch games whose turn it is."""
        for seat in self.fleet.due():
            self.supervisor.start(seat)
        self._raise_failure()
        self.fleet.launch_next()

    def wait_for_hellos(self) -> list[messages.Hello]:
        """Wait until every env's player has said what it is, and one game has come up."""

        def hellos() -> list[messages.Hello]:
            said = [seat.instance.hello for seat in self.supervisor.env_seats]
            return [hello for hello in said if hello is not None]

        supervisor = self.supervisor
        n_envs = len(supervisor.env_seats)
        self.wait_until(lambda: len(hellos()) == n_envs and supervisor.stats.launches > 0)
        return hellos()

    def fit_slots(self, layout: SlotLayout) -> None:
        """Size the shared memory for the spaces that the pool has agreed on.

        Raises:
            ConfigError: there is not that much memory, or a player's spaces lie in it otherwise.
        """
        with self.bookkeeping:
            self.fleet.slots.fit(layout)
            self.supervisor.attach_all()
            self._raise_failure()

    def look_for_more(self) -> bool:
        """Look whether `wait_until` has more to handle than replies, if it is time for a poll."""
        now_s = time.monotonic()
        if now_s < self._next_poll_s:
            return False
        if self._waiter.has_more() or not self.fleet.all_at_rest():
            return True
        self._next_poll_s = now_s + _POLL_INTERVAL_S
        return False

    def wait_for_ring(self, instance: Instance) -> bool:
        """Wait for one instance's doorbell, as cheaply as possible.

        Returns:
            False if something else has happened, or it is time for a poll: call `wait_until`.
        """
        assert instance.worker is not None, "an action was sent there"
        return self._waiter.wait_for(instance.worker.reply_doorbell, _POLL_INTERVAL_S)

    def _poll(self, until_s: float) -> None:
        """Wait until something happens, at the latest until then, and handle it."""
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
            if seat_of_channel is not None:  # else replaced while this batch was handled
                supervisor.receive(seat_of_channel)
        self._next_poll_s = time.monotonic() + _POLL_INTERVAL_S
        if not ready:
            supervisor.check_deadlines()
        self._raise_failure()

    def _raise_what_came(self) -> None:
        """Raise what the user's code has raised in a wait that ran it: the records are torn."""
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
            del error, raised  # its traceback has this frame

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
            del failure  # its traceback has this frame

    def _hear_the_others(self) -> None:
        """An error in one env is often one in all: note what else is raised in this step."""
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
        """Every wait raises `ClosedError` from now on; `wake` one that is under way."""
        self.bookkeeping.closed = True

    def wake(self) -> None:
        """Wake a wait in another thread."""
        self._watchdog.doorbell.ring()


class Bookkeeping:
    """A block in which the pool's records change; see the module.

    Attributes:
        bring_up_to_date: called as the outermost block begins: a fast path may have left the
            records behind.
        torn: a block has begun and not come to its end, neither normally nor with an error of ours.
        closed: the pool is closed, and so are the things that its calls work with.
    """

    _OURS = (
        SC2PoolError,
        GymnasiumError,
        AlreadyPendingCallError,
        NoAsyncCallError,
        multiprocessing.TimeoutError,
    )
    """Errors that the pool raises itself while its records are whole."""

    def __init__(self) -> None:
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

    def check_whole(self) -> None:
        """Raise unless the records are whole.

        Raises:
            InterruptedCallError: they are torn.
        """
        if self.torn:
            raise InterruptedCallError(
                "another thread is in a call of this pool: one thread at a time"
                if self.in_another_thread()
                else "an interrupt has cut an earlier call short, or another thread is in one: "
                "reset all envs first"
            )

    def in_another_thread(self) -> bool:
        """True if a block is being run, and not by the calling thread."""
        return self._depth > 0 and self._thread != threading.get_ident()

    def begin_anew(self) -> None:
        """Everything is as in a new pool."""
        self._depth = 0
        self.torn = False
