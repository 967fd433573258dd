"""A pool's operating system resources: made in order, shown to people, ended in reverse.

    waiter, shared memory, instances, watchdog ─► `EventLoop`      metrics, window

Rules: nothing is left of a runtime that could not be made; `close` ends everything, from any thread
and at any time, whatever is under way, and a Ctrl-C cuts only its waiting short.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.fleet import Fleet
from sc2pool.pool.instances.instance_stats import instance_stats
from sc2pool.pool.instances.states import State
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.instances.system import REAL, System
from sc2pool.pool.report.metrics import MetricsServer
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.snapshot import Snapshots
from sc2pool.pool.report.window import Window, open_window
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.processes.uninterrupted import submit, uninterrupted

_CLOSE_GRACE_S = 2.0
_LEAVES_WITHIN_S = 2.0
"""How long `close` waits for the end of another thread's call."""
_POLL_INTERVAL_S = 0.01


class Runtime:
    """Owner of all that a pool has of the operating system.

    Args:
        specs: of each env's player, as workers take it (`System.packed`).
        spares: how many more instances of the first player to keep.

    Attributes:
        fleet: all seats, each with its instance.
    """

    def __init__(
        self, specs: Sequence[Any], spares: int, config: PoolConfig, system: System = REAL
    ) -> None:
        self._owner_pid = os.getpid()
        self._config = config
        self._ended = False
        self._metrics: MetricsServer | None = None
        self._window: Window | None = None
        replays = None if config.replays is None else ReplayFolder(config.replays)
        self._waiter = system.waiter()
        with ExitStack() as owned:
            owned.callback(self._waiter.close)
            self._slots = system.slots(len(specs) + spares)
            owned.callback(self._slots.close)
            self.fleet = Fleet(specs, spares, config, self._waiter, self._slots, system=system)
            owned.callback(self.fleet.close)
            supervisor = Supervisor(config, self.fleet, len(specs), replays)
            snapshots = self._snapshots = Snapshots(supervisor.stats, self.fleet.run)
            seats = self.fleet.seats
            self._watchdog = system.watchdog(
                self.fleet.watched,
                config.recycle,
                config.watchdog_interval_s,
                lambda samples: snapshots.after_sample(instance_stats(seats, samples)),
            )
            owned.callback(self._watchdog.close)
            self._waiter.add(self._watchdog.doorbell.listening, None)
            self.loop = EventLoop(self._waiter, self._watchdog, supervisor)
            owned.pop_all()

    def stats(self) -> PoolStats:
        """See `Pool.stats`."""
        instances = instance_stats(self.fleet.seats, self._watchdog.samples())
        return self._snapshots.take(instances, self._watchdog.cpu_s)

    def serve_metrics(self) -> None:
        """Serve Prometheus until `close`, if the configuration asks for it."""
        config = self._config
        if config.metrics_port is not None:
            self._metrics = MetricsServer(
                self.stats, tuple(State), config.metrics_host, config.metrics_port
            )

    def open_window(self) -> None:
        """Show the games on a page until `close`."""
        run = self.fleet.run

        def opening() -> None:
            self._window = open_window(run)

        uninterrupted(opening)

    def start_anew(self) -> None:
        """Replace every instance, after an interrupt that has left the records torn."""
        self.loop.supervisor.forget()
        self.fleet.start_anew()
        self._waiter.take_raised()  # what the players of before still raised as they ended
        self.loop.bookkeeping.begin_anew()

    def close(self, *, ask_first: bool, grace_s: float = _CLOSE_GRACE_S) -> None:
        """End all instances; with `ask_first`, players may close by themselves for `grace_s`.

        A Ctrl-C here cuts that short, and nothing else: all is ended all the same. It may be called
        again.
        """
        if os.getpid() != self._owner_pid:
            return  # a forked child's copy: everything here is its parent's
        self.loop.stop()
        try:
            self._end_calls_of_others()
        finally:
            self._end_all(Deadline.after(grace_s) if ask_first else None)

    def _end_calls_of_others(self) -> None:
        """A call that waits in another thread, as `AsyncPPO`'s actor does, raises ClosedError."""
        loop, deadline = self.loop, Deadline.after(_LEAVES_WITHIN_S)
        while loop.bookkeeping.in_another_thread() and not self._ended and not deadline.expired():
            loop.wake()
            time.sleep(_POLL_INTERVAL_S)

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
            ending.callback(self._slots.close)
            ending.callback(self.fleet.close)
            ending.callback(self._watchdog.close)  # until then it writes into the run's folder
            # What it closes is watched no longer: a serial pool waits once more, and on Windows
            # `select` fails with a closed descriptor.
            ending.callback(self._waiter.remove, self._watchdog.doorbell.listening)
            if grace is not None and not self.loop.supervisor.failed:
                self.fleet.ask_to_close(grace, hurry)
