"""Waits for what happens to the instances of a pool, and has it seen to.

    doorbells, messages, ends of file, deadlines, verdicts ─► wait_until ─► `reactions`

It acts only inside `wait_until`, in the trainer's thread; between calls the instances go on by
themselves. Rules: every wait has a deadline; what ends the whole pool is raised where it is waited,
and every instance is gone then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait as wait_readable

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER, Deadline
from sc2pool.pool.instances.roster import Roster
from sc2pool.pool.instances.rows import instance_rows
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED, State
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.instances.watchdog import Watchdog
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import ChannelClosedError
from sc2pool.pool.ipc.slot import TELLING
from sc2pool.pool.ipc.waiter import Waiter
from sc2pool.pool.report.metrics import MetricsServer
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.snapshot import Snapshots
from sc2pool.pool.report.stats import PoolStats

_CLOSE_GRACE_S = 2.0
_HEARING_S = 1.0
"""Where an env's code raised, the others may tell for so long whether theirs did too."""
_LOOK_AGAIN_S = 0.01
_LOOK_INTERVAL_S = 0.02
"""So often at least, while steps are taken, all else is seen to: spares, messages, verdicts."""


class EventLoop(Supervisor):
    """Owner of all instances of a pool.

    Args:
        specs: a pickled `PlayerSpec` for each env.
        spares: how many more instances of the first player to keep.
        config: limits and policies.
    """

    def __init__(self, specs: Sequence[bytes], spares: int, config: PoolConfig) -> None:
        self._owner_pid = os.getpid()
        self._next_look_s = 0.0
        self.closed = False
        self._metrics: MetricsServer | None = None
        replays = None if config.replays is None else ReplayFolder(config.replays)
        self._waiter = Waiter()
        with ExitStack() as owned:  # gives back what there is, wherever Ctrl-C strikes
            owned.callback(self._waiter.close)
            roster = Roster(specs, spares, config.limits, self._waiter)
            owned.callback(roster.close)
            super().__init__(config, roster, len(specs), replays)
            snapshots = self._snapshots = Snapshots(self.stats, roster.run)
            self.watchdog = Watchdog(
                roster.watched,
                config.recycle,
                config.watchdog_interval_s,
                lambda samples: snapshots.after_look(instance_rows(roster.seats, samples)),
            )
            owned.callback(self.watchdog.close)
            self._waiter.add(self.watchdog.bell.listening, None)
            owned.pop_all()

    def stats_now(self) -> PoolStats:
        """See `Pool.stats`."""
        rows = instance_rows(self.all_seats, self.watchdog.samples())
        return self._snapshots.take(rows, self.watchdog.cpu_s)

    def serve_metrics(self) -> None:
        """Tell Prometheus, where that is wanted, until `close`."""
        config = self._config
        if config.metrics_port is not None:
            self._metrics = MetricsServer(
                self.stats_now, tuple(State), config.metrics_host, config.metrics_port
            )

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
        for seat in self.all_seats:  # rings that were not waited for, or whose wait was interrupted
            self.on_ring(seat)
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
                self.watchdog.bell.quiet()
                self.on_verdicts(self.watchdog.verdicts())
                plan = True
                continue
            instance, is_bell = tag
            seat = instance.seat
            if seat.instance is not instance:
                continue  # replaced while this batch of events was handled
            if is_bell:
                self.on_ring(seat)
            else:
                plan = True
                self.on_readable(seat)
        self._next_look_s = time.monotonic() + _LOOK_INTERVAL_S
        if not ready:
            self.check_deadlines()
        if self.failure is not None:
            if self.raised:
                self._hear_the_others()
            self.roster.end_all()
            raise self.failure
        return plan

    def _hear_the_others(self) -> None:
        """An error in one env is often one in all: note what else is raised in this step."""
        deadline = Deadline.after(_HEARING_S)
        told = {seat.index for seat, _ in self.raised}
        for seat in self.all_seats:
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
                    if isinstance(message, messages.Raised | messages.OutOfBand):
                        self.on_message(seat, message)

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
