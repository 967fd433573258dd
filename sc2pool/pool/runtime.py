"""Creates a pool's operating system resources in order, and closes them in reverse order.

The resources are a waiter, the shared memory, the instances, the watchdog, metrics and the page.
Rules:
* If a runtime cannot be made, all resources made so far are closed.
* `close` ends all resources, and any thread may call it at any time. A Ctrl-C only shortens the
  waits in `close`.
* A runtime is opened, and its finalizer is registered, in a thread that no interrupt reaches. So an
  interrupt leaves no game behind.
* Only the process that made a runtime uses it. A runtime ends when the pool is closed or collected,
  or when the process exits. If the pool fails, the instances end.
* The statistics of the instances are plain values, which any thread may read.
"""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.pool.instances.event_loop import Bookkeeping, EventLoop
from sc2pool.pool.instances.fleet import Fleet
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import State
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.instances.system import REAL, System
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.snapshot import Snapshots
from sc2pool.pool.statistics import InstanceStats, PoolStats
from sc2pool.pool.watchdog import Sample, cpu_s, memory_bytes
from sc2pool.processes.spawn import submit, uninterrupted

if TYPE_CHECKING:
    from sc2pool.pool.report.pages import MetricsServer, WatchPage

_CLOSE_GRACE_S = 2.0
_LEAVES_WITHIN_S = 2.0
"""How long `close` waits for another thread's call of the pool to end."""
_POLL_INTERVAL_S = 0.01


class Runtime:
    """Owns a pool's resources: an instance per spec, then `spares` instances of the first spec."""

    def __init__(
        self, specs: Sequence[Any], spares: int, config: PoolConfig, system: System = REAL
    ) -> None:
        self._owner_pid = os.getpid()
        self._config = config
        self._ended = False
        self._metrics: MetricsServer | None = None
        self._watch_page: WatchPage | None = None
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
        """Serve metrics for Prometheus until `close`, if the configuration asks for them."""
        config = self._config
        if config.metrics_port is not None:
            from sc2pool.pool.report.pages import MetricsServer  # noqa: PLC0415 - few pools have it

            self._metrics = MetricsServer(
                self.stats, tuple(State), config.metrics_host, config.metrics_port
            )

    def open_watch_page(self) -> None:
        """Show the games on a page until `close`."""
        from sc2pool.pool.report.pages import open_watch_page  # noqa: PLC0415 - few have it

        run = self.fleet.run

        def opening() -> None:
            self._watch_page = open_watch_page(run)

        uninterrupted(opening)

    def start_anew(self) -> None:
        """Replace every instance, after an interrupt has left the records torn (half updated)."""
        self.loop.supervisor.forget()
        self.fleet.start_anew()
        self._waiter.take_raised()  # drop errors that the old players raised as they ended
        self.loop.bookkeeping.begin_anew()

    def close(self, *, ask_first: bool, grace_s: float = _CLOSE_GRACE_S) -> None:
        """End all instances; if `ask_first`, players first get `grace_s` to close by themselves."""
        if os.getpid() != self._owner_pid:
            return  # in a forked child: the parent owns all resources
        self.loop.stop()
        try:
            self._end_calls_of_others()
        finally:
            self._end_all(Deadline.after(grace_s) if ask_first else None)

    def _end_calls_of_others(self) -> None:
        """Make a call that waits in another thread (`AsyncPPO`'s actor) raise `ClosedError`."""
        loop, deadline = self.loop, Deadline.after(_LEAVES_WITHIN_S)
        while loop.bookkeeping.in_another_thread() and not self._ended and not deadline.expired():
            loop.wake()
            time.sleep(_POLL_INTERVAL_S)

    def _end_all(self, grace: Deadline | None) -> None:
        hurry = threading.Event()
        ending = submit(partial(self._end, grace, hurry))
        if self._watchdog.is_this_thread:
            return  # this is the watchdog's thread, which `_end` joins: do not wait
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
            if self._watch_page is not None:
                ending.callback(self._watch_page.close)
            ending.callback(self._slots.close)
            ending.callback(self.fleet.close)
            ending.callback(self._watchdog.close)  # this runs before the run's folder is deleted
            # The waiter must forget the watchdog's doorbell before the watchdog closes it.
            # A serial pool still waits, and `select` on Windows fails on a closed descriptor.
            ending.callback(self._waiter.remove, self._watchdog.doorbell.listening)
            if grace is not None and not self.loop.supervisor.failed:
                self.fleet.ask_to_close(grace, hurry)


_REFUSED = "the system refuses what a pool needs: {}"


class Lifetime:
    """The lifetime of one pool, which belongs to the process that creates this object."""

    _runtime: Runtime
    _records: Bookkeeping

    def __init__(self) -> None:
        self._owner_pid = os.getpid()
        self._end: weakref.finalize[..., object] | None = None

    def open(self, pool: object, make: Callable[[], Runtime]) -> Runtime:
        """Make the runtime, which ends with the pool; ConfigError without enough resources."""

        def opening() -> None:
            try:
                self._runtime = make()
            except OSError as error:
                raise ConfigError(_REFUSED.format(error)) from error
            self._records = self._runtime.loop.bookkeeping
            self._end = weakref.finalize(pool, self._runtime.close, ask_first=False)

        try:
            opened = submit(opening)
        except OSError as error:
            raise ConfigError(_REFUSED.format(error)) from error
        opened.result()  # an OSError here comes from the user's signal handler: do not convert it
        return self._runtime

    @property
    def closed(self) -> bool:
        return self._records.closed

    def close(self, *, ask_first: bool, grace_s: float | None) -> None:
        """See `Pool.close`."""
        if self._end is not None and not self._end.alive:
            return  # already closed; if the interpreter exits, modules used below may be gone
        if os.getpid() != self._owner_pid:
            warn_of_owner(self._owner_pid)
            return
        with suppress(OSError):  # if the system refuses the thread, nothing was opened
            uninterrupted(lambda: None)  # wait for an `open` that continues after an interrupt
        if self._end is None:
            return  # nothing could be opened
        if grace_s is None:
            self._runtime.close(ask_first=ask_first)
        else:
            self._runtime.close(ask_first=ask_first and grace_s > 0, grace_s=grace_s)
        self._end.detach()  # if an interrupt skips this line, `close` can be called again


def warn_of_owner(pid: int) -> None:
    """Warn the caller of `close` that another process, `pid`, owns the pool."""
    words = f"this pool belongs to process {pid}, which must close it"
    warnings.warn(words, RuntimeWarning, stacklevel=4)


_TRIES = 10
_EXCHANGE_S = 0.001


def instance_stats(seats: Sequence[Seat], samples: Mapping[int, Sample]) -> list[InstanceStats]:
    """The statistics of each seat's instance."""
    rows = []
    workers: set[int | None] = set()
    for seat, instance in seated(seats):
        sample = samples.get(instance.number)
        row = stats_of(seat, instance, sample)
        if sample is not None and not sample.watched.alone and row.worker_pid not in workers:
            workers.add(row.worker_pid)
            worker_bytes = 0 if sample.worker is None else sample.worker.rss_bytes
            row = replace(row, memory_bytes=(row.memory_bytes or 0) + worker_bytes)
        rows.append(row)
    return rows


def seated(seats: Sequence[Seat]) -> list[tuple[Seat, Instance]]:
    """Each seat with its instance; if an exchange is under way, the seats are read again."""
    pairs = [(seat, seat.instance) for seat in seats]
    for _ in range(_TRIES):  # limited: Ctrl-C may leave an exchange half done
        if len({instance.number for _, instance in pairs}) == len(pairs):
            break
        time.sleep(_EXCHANGE_S)  # the trainer's thread completes the exchange
        pairs = [(seat, seat.instance) for seat in seats]
    return pairs


def stats_of(seat: Seat, instance: Instance, sample: Sample | None) -> InstanceStats:
    games, episode = instance.games, instance.episode
    first = games[0] if games else None
    progress = instance.queue.progress()
    return InstanceStats(
        seat=seat.name,
        instance=instance.number,
        state=str(instance.state),
        episode=None if episode is None else episode.number,
        steps=progress.steps,
        episode_steps=progress.episode_steps,
        episode_return=finite(progress.episode_return),
        pid=first.pid if first else None,
        worker_pid=instance.worker_pid,
        port=first.port if first else None,
        listener=None if first is None else "proven" if first.listener_proven else "unproven",
        memory_bytes=memory_bytes(sample) if sample else None,
        cpu_s=cpu_s(sample) if sample else None,
        loop_cost_growth=instance.queue.loop_cost_growth() or None,
        other_games=[{"pid": game.pid, "port": game.port} for game in games[1:]],
    )


def finite(value: float) -> float | None:
    """The value, or None if it is NaN or infinite, which JSON cannot represent."""
    return value if math.isfinite(value) else None
