"""Waits for what happens to the instances of a pool, and passes it to the supervisor.

    doorbells, messages, ends of file, deadlines, verdicts ─► wait_until ─► `supervisor`

It owns the instances' lifetime: it makes them, and ends them all. It acts only inside its waits, in
the trainer's thread; between calls the instances go on by themselves. Rules: every wait has a
deadline; what ends the whole pool is raised by the waiting call, and every instance is gone then;
an interrupt of a wait does no harm (see `bookkeeping`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import ClosedError
from sc2pool.pool.instances.bookkeeping import Bookkeeping
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.roster import Roster
from sc2pool.pool.instances.rows import instance_rows
from sc2pool.pool.instances.states import AWAITED, State
from sc2pool.pool.instances.supervisor import Supervisor, read
from sc2pool.pool.instances.system import REAL, System
from sc2pool.pool.instances.workers import Leaving, Worker
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import ChannelClosedError
from sc2pool.pool.queues.common_bell import Bell
from sc2pool.pool.queues.layout import SlotLayout
from sc2pool.pool.report.metrics import MetricsServer
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.snapshot import Snapshots
from sc2pool.pool.report.window import Window, open_window
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.processes.uninterrupted import submit, uninterrupted

_CLOSE_GRACE_S = 2.0
_HEARING_S = 1.0
"""How long other envs may still report their errors after one env's code has raised."""
_LEAVES_WITHIN_S = 2.0
"""How long `close` waits for the end of another thread's call."""
_LOOK_AGAIN_S = 0.01
_LOOK_INTERVAL_S = 0.02
"""How often spares, messages and verdicts are looked at while nothing but plain replies come."""


class EventLoop:
    """Owner of all instances of a pool.

    Args:
        specs: a pickled `PlayerSpec` for each env.
        spares: how many more instances of the first player to keep.
        config: limits and policies.
        system: makes what the operating system has to give.

    Attributes:
        board: the shared memory of all queue pairs.
        supervisor: decides what follows from what happens.
        bookkeeping: whether the records are whole; shared by all that change them.
        closed: `close` was called.
    """

    def __init__(
        self, specs: Sequence[bytes], spares: int, config: PoolConfig, system: System = REAL
    ) -> None:
        self._owner_pid = os.getpid()
        self._config = config
        self._next_look_s = 0.0
        self.bookkeeping = Bookkeeping()
        self.closed = False
        self._ended = False
        self._metrics: MetricsServer | None = None
        self._window: Window | None = None
        replays = None if config.replays is None else ReplayFolder(config.replays)
        self._waiter = system.waiter()
        with ExitStack() as owned:
            owned.callback(self._waiter.close)
            self.board = system.board(len(specs) + spares)
            owned.callback(self.board.close)
            self.roster = Roster(specs, spares, config, self._waiter, self.board, system=system)
            owned.callback(self.roster.close)
            self.supervisor = Supervisor(config, self.roster, len(specs), replays)
            snapshots = self._snapshots = Snapshots(self.supervisor.stats, self.roster.run)
            seats = self.roster.seats
            self._watchdog = system.watchdog(
                self.roster.watched,
                config.recycle,
                config.watchdog_interval_s,
                lambda samples: snapshots.after_look(instance_rows(seats, samples)),
            )
            owned.callback(self._watchdog.close)
            self._waiter.add(self._watchdog.bell.listening, None)
            owned.pop_all()

    def stats(self) -> PoolStats:
        """See `Pool.stats`."""
        rows = instance_rows(self.roster.seats, self._watchdog.samples())
        return self._snapshots.take(rows, self._watchdog.cpu_s)

    def serve_metrics(self) -> None:
        """Serve Prometheus until `close`, if the configuration asks for it."""
        config = self._config
        if config.metrics_port is not None:
            self._metrics = MetricsServer(
                self.stats, tuple(State), config.metrics_host, config.metrics_port
            )

    def open_window(self) -> None:
        """Show the games on a page until `close`."""
        run = self.roster.run

        def opening() -> None:
            self._window = open_window(run)

        uninterrupted(opening)

    def wait_until(self, condition: Callable[[], bool], deadline: Deadline = NEVER) -> None:
        """Handle what happens until `condition()` holds, or the deadline has passed.

        Raises:
            ClosedError: another thread has closed the pool.
            SC2PoolError: what ends the pool; all instances are gone then.
        """
        with self.bookkeeping:
            for seat in self.supervisor.seats:  # rings of before, or whose wait was interrupted
                self.supervisor.look(seat)
            if time.monotonic() >= self._next_look_s:
                self._begin_what_is_due()
                self._look(0.0)
            plan = True
            wake_s = 0.0
            while not condition() and not deadline.expired():
                if plan:
                    self._begin_what_is_due()
                    wake_s = min(self.roster.next_wake_s(), deadline.instant_s)
                plan = self._look(wake_s)

    def _begin_what_is_due(self) -> None:
        """Start workers and launch games whose turn it is."""
        for seat in self.roster.due():
            self.supervisor.start(seat)
        self._raise_failure()
        self.roster.launch_next()

    def wait_for_hellos(self) -> list[messages.Hello]:
        """Wait until every env's player has said what it is, and one game has come up."""

        def hellos() -> list[messages.Hello]:
            said = [seat.instance.hello for seat in self.supervisor.env_seats]
            return [hello for hello in said if hello is not None]

        supervisor = self.supervisor
        n_envs = len(supervisor.env_seats)
        self.wait_until(lambda: len(hellos()) == n_envs and supervisor.stats.launches > 0)
        return hellos()

    def fit_board(self, layout: SlotLayout) -> None:
        """Size the shared memory for the spaces that the pool has agreed on.

        Raises:
            ConfigError: there is not that much memory, or a player's spaces lie in it otherwise.
        """
        with self.bookkeeping:
            self.board.fit(layout)
            self.supervisor.attach_all()
            self._raise_failure()

    def has_more_than_replies(self) -> bool:
        """True if it is time for a look, and `wait_until` has more to handle than replies."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return False
        if self._waiter.has_more() or not self.roster.all_at_rest():
            return True
        self._next_look_s = now_s + _LOOK_INTERVAL_S
        return False

    def bells_of(self, instances: Sequence[Instance]) -> Sequence[Bell]:
        """See `Roster.bells_of`."""
        return self.roster.bells_of(instances)

    def wait_for_ring(self, instance: Instance) -> bool:
        """Wait for one instance's doorbell, as cheaply as possible.

        Returns:
            False if something else has happened, or it is time for a look: call `wait_until`.
        """
        assert instance.worker is not None, "an action was sent there"
        return self._waiter.wait_for(instance.worker.reply_bell, _LOOK_INTERVAL_S)

    def _look(self, until_s: float) -> bool:
        """Wait until something happens, at the latest until then, and handle it.

        Returns:
            Whether it was anything but replies.
        """
        supervisor = self.supervisor
        timeout_s = max(0.0, until_s - time.monotonic())
        self.bookkeeping.torn = False
        ready = self._waiter.wait(timeout_s)
        self.bookkeeping.torn = True
        if self.closed:
            raise ClosedError("another thread has closed the pool during this call")
        plan = not ready
        for tag in ready:
            if tag is None:
                self._watchdog.bell.quiet()
                supervisor.on_verdicts(self._watchdog.verdicts())
                plan = True
                continue
            if isinstance(tag, Worker):
                for seat in supervisor.seats:
                    if seat.instance.worker is tag:
                        supervisor.look(seat)
                continue
            plan = True
            if isinstance(tag, Leaving):
                self.roster.look_who_left(tag.worker)
                continue
            seat_of_channel = self.roster.seat_of(tag)
            if seat_of_channel is not None:  # else replaced while this batch was handled
                supervisor.receive(seat_of_channel)
        self._next_look_s = time.monotonic() + _LOOK_INTERVAL_S
        if not ready:
            supervisor.check_deadlines()
        self._raise_failure()
        return plan

    def _raise_failure(self) -> None:
        failure = self.supervisor.failure
        if failure is None:
            return
        if self.supervisor.raised:
            self._hear_the_others()
        self.roster.end_all()
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
                if not instance.channel.readable(_LOOK_AGAIN_S):
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

    def start_anew(self) -> None:
        """Replace every instance, after an interrupt that has left the records torn."""
        self.supervisor.forget()
        self.roster.start_anew()
        self.bookkeeping.begin_anew()

    def close(self, *, ask_first: bool, grace_s: float = _CLOSE_GRACE_S) -> None:
        """End all instances; with `ask_first`, players may close by themselves for `grace_s`.

        A Ctrl-C here cuts that short, and nothing else: all is ended all the same. It may be called
        again.
        """
        if os.getpid() != self._owner_pid:
            return  # a forked child's copy: everything here is its parent's
        self.closed = True
        try:
            self._end_calls_of_others()
        finally:
            self._end_all(Deadline.after(grace_s) if ask_first else None)

    def _end_calls_of_others(self) -> None:
        """A call that waits in another thread, as `AsyncPPO`'s actor does, raises ClosedError."""
        deadline = Deadline.after(_LEAVES_WITHIN_S)
        while self.bookkeeping.in_another_thread() and not self._ended and not deadline.expired():
            self._watchdog.bell.ring()
            time.sleep(_LOOK_AGAIN_S)

    def _end_all(self, grace: Deadline | None) -> None:
        hurry = threading.Event()
        ending = submit(partial(self._end, grace, hurry))
        if self._watchdog.is_this_thread:
            return  # the garbage collector runs anywhere, and the watchdog is ended, too
        try:
            ending.result()
        except BaseException:
            hurry.set()
            ending.result()
            raise

    def _end(self, grace: Deadline | None, hurry: threading.Event) -> None:
        if self._ended:
            return
        self._ended = True
        with ExitStack() as ending:
            ending.callback(self._waiter.close)
            if self._metrics is not None:
                ending.callback(self._metrics.close)
            if self._window is not None:
                ending.callback(self._window.close)
            ending.callback(self.board.close)
            ending.callback(self.roster.close)
            ending.callback(self._watchdog.close)  # until then it writes into the run's folder
            if grace is not None and not self.supervisor.failed:
                self.roster.ask_to_close(grace, hurry)
