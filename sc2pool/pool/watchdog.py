"""The watchdog samples each process of the pool once a second and gives verdicts, but never acts.

The watchdog samples in its own thread. A pure function turns samples into verdicts, and a doorbell
wakes the supervisor, which acts on the verdicts. An exit, a closed connection or an expired
deadline is noticed without the watchdog. The watchdog finds other faults: a process that is
stopped, too large, or hung. Rules:
* *Slow is not hung*: for a process that uses CPU time, the deadline is the only limit.
* If the watchdog itself did not run for a while (Ctrl-Z, a laptop's closed lid), the next sample is
  not compared with the previous one, because no game caused the gap. If no process could be
  inspected (no free descriptor), the next sample is not compared with the previous one either.
* All processes below a worker count as its game, because the executable of a game may be a script
  that starts the game.
* The watchdog must use little CPU time: for eight games it uses 0.03 % of a core.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sc2pool.config import RecyclePolicy
from sc2pool.errors import FaultKind
from sc2pool.game.hang_detection import IDLE_CPU_SHARE, Activity, MatchSide, doing
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.processes.spawn import start_thread
from sc2pool.processes.tree import Processes, ProcessRow, is_ready, process_table, waited_s

log = logging.getLogger("sc2pool")

_ENDS_WITHIN_S = 5.0
"""How long `close` waits for the thread, which normally ends after its current sample."""
_GAP_FACTOR = 3.0
"""A sample more than this many intervals after the previous one is not compared with it."""


@dataclass(frozen=True)
class Watched:
    """The facts about an instance that the watchdog needs.

    Attributes:
        game_pids: the pids of its games, as the worker started them; empty if the player has no
            games or they have not started.
        awaited_since_s: the monotonic time since which a reply is awaited, or None.
        limit_s: how long the reply may take if the processes make no progress.
        paused: whether the pool itself has stopped the game or is about to stop it.
        pauses: how often the pool has stopped the game.
        alone: whether its worker hosts no other instance.
        episodes: how many episodes it has begun, including the current episode.
    """

    instance: int
    worker_pid: int
    game_pids: Sequence[int]
    awaited_since_s: float | None
    limit_s: float
    paused: bool = False
    pauses: int = 0
    alone: bool = True
    episodes: int = 0


@dataclass(frozen=True)
class ProcessSample:
    """One process, or the sum of several; the sum is stopped if any of its processes is stopped."""

    stopped: bool
    rss_bytes: int
    cpu_s: float


@dataclass(frozen=True)
class Sample:
    """One inspection of an instance; a `worker` or `game` that has exited is None."""

    at_s: float
    watched: Watched
    worker: ProcessSample | None
    game: ProcessSample | None
    stopped_games: Sequence[int] = ()
    """The indices of stopped games in `watched.game_pids`, if there are several games."""
    waited_s: float | None = None
    """How long its processes were ready to run but had to wait for a CPU. None until the reply has
    been awaited for half of `limit_s`."""
    is_ready: bool = False
    """True if one of its processes ran, or waited for a CPU. False if `waited_s` is None."""


@dataclass(frozen=True)
class Verdict:
    """A watchdog's verdict on an instance.

    Attributes:
        kind: the kind of the fault, or None if `starved` or if only a soft recycle (a replacement
            before the next episode) is due.
        of_worker: whether the cause is the worker, not the game, so that a soft recycle is due for
            all instances of the worker.
        starved: whether the processes get too little CPU time, so that the deadline is extended.
    """

    instance: int
    kind: FaultKind | None
    detail: str
    of_worker: bool = False
    starved: bool = False


def decide(
    first: Sample, previous: Sample | None, now: Sample, policy: RecyclePolicy
) -> Verdict | None:
    """The verdict on one instance, or None. After a gap the previous sample is None.

    Growth is measured from `first`, the last sample in or before the instance's first episode.
    """
    # The first rule with a verdict wins, so the more severe rules come first.
    return (
        _stopped(previous, now)
        or _too_large(now, policy)
        or _shared_worker_over("hard", policy.hard_memory_bytes, now, FaultKind.MEMORY)
        or _hung(previous, now)
        or _shared_worker_over("soft", policy.soft_memory_bytes, now, None)
        or _grown(first, now, policy)
    )


def _stopped(previous: Sample | None, now: Sample) -> Verdict | None:
    if previous is None:
        return None
    then = previous.watched
    # `by_us` is also True if a pause was between the samples or ended just before the new sample.
    by_us = then.paused or now.watched.paused or then.pauses != now.watched.pauses
    for name in ("worker",) if by_us else ("game", "worker"):
        before, after = getattr(previous, name), getattr(now, name)
        if before is not None and after is not None and before.stopped and after.stopped:
            sides = set(previous.stopped_games) & set(now.stopped_games) if name == "game" else ()
            which = " and ".join(side for i, side in enumerate(MatchSide) if i in sides)
            detail = f"the {name} was stopped by a signal and not continued"
            if which:
                detail = f"{which}: {detail}"
            return Verdict(now.watched.instance, FaultKind.STOPPED, detail, name == "worker")
    return None


def _too_large(now: Sample, policy: RecyclePolicy) -> Verdict | None:
    limit = policy.hard_memory_bytes
    rss = memory_bytes(now)
    if limit is None or rss <= limit * _games(now):
        return None
    limit *= _games(now)
    detail = f"{rss / 1e6:,.0f} MB resident, over the hard limit of {limit / 1e6:,.0f} MB"
    of_worker = now.game is None or _rss(now.worker) > _rss(now.game)
    return Verdict(now.watched.instance, FaultKind.MEMORY, detail, of_worker)


def _shared_worker_over(
    name: str, limit: int | None, now: Sample, kind: FaultKind | None
) -> Verdict | None:
    """A verdict of this kind if a worker with several instances exceeds the limit, else None."""
    rss = _rss(now.worker)
    if now.watched.alone or limit is None or rss <= limit:
        return None
    detail = (
        f"the worker, which serves several envs: {rss / 1e6:,.0f} MB resident, over the {name} "
        f"limit of {limit / 1e6:,.0f} MB"
    )
    return Verdict(now.watched.instance, kind, detail, of_worker=True)


def _hung(previous: Sample | None, now: Sample) -> Verdict | None:
    since_s = now.watched.awaited_since_s
    if previous is None or since_s is None or since_s != previous.watched.awaited_since_s:
        return None
    late_s = now.at_s - since_s
    did = doing([_activity(previous)], [_activity(now)], now.at_s - previous.at_s)
    if previous.waited_s is not None and did.is_starved:
        detail = (
            f"no reply for {late_s:.1f} s, because the machine is too busy: its processes wait for "
            "a processor"
        )
        return Verdict(now.watched.instance, None, detail, starved=True)
    if late_s <= now.watched.limit_s or did.cpu_share > IDLE_CPU_SHARE:
        return None
    detail = f"no reply for {late_s:.1f} s and no CPU time used"
    return Verdict(now.watched.instance, FaultKind.HUNG, detail)


def _activity(sample: Sample) -> Activity:
    return Activity(cpu_s(sample), sample.waited_s or 0.0, sample.is_ready)


def _grown(first: Sample, now: Sample, policy: RecyclePolicy) -> Verdict | None:
    rss = memory_bytes(now)
    if policy.soft_memory_bytes is not None and rss > policy.soft_memory_bytes * _games(now):
        detail = f"{rss / 1e6:,.0f} MB resident, over the soft limit"
        return Verdict(now.watched.instance, None, detail)
    growth = rss - memory_bytes(first)
    if policy.growth_bytes is not None and growth > policy.growth_bytes:
        return Verdict(now.watched.instance, None, f"grown by {growth / 1e6:,.0f} MB")
    return None


def _games(sample: Sample) -> int:
    """The factor for limits per game: the number of games, or 1 for a player without a game."""
    return len(sample.watched.game_pids) or 1


def memory_bytes(sample: Sample) -> int:
    """The memory of an instance's games, with its worker if that has no other instance."""
    worker = _rss(sample.worker) if sample.watched.alone or sample.game is None else 0
    return _rss(sample.game) + worker


def _rss(process: ProcessSample | None) -> int:
    return 0 if process is None else process.rss_bytes


def cpu_s(sample: Sample) -> float:
    return sum(process.cpu_s for process in (sample.worker, sample.game) if process)


class Watchdog:
    """The watchdog's thread, which inspects the processes that `watched` returns.

    `watched` is called in the watchdog's thread, so it must change nothing. `after_sample` is
    called in the same thread, with the newest sample of each instance.
    """

    def __init__(
        self,
        watched: Callable[[], list[Watched]],
        policy: RecyclePolicy,
        interval_s: float,
        after_sample: Callable[[Mapping[int, Sample]], None] = lambda _: None,
    ) -> None:
        self._watched = watched
        self._policy = policy
        self._interval_s = interval_s
        self._after_sample = after_sample
        self._first: dict[int, Sample] = {}
        self._previous: dict[int, Sample] = {}
        self._verdicts: queue.SimpleQueue[Verdict] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._table = process_table(os.getpid())
        self.doorbell = Doorbell.create()
        self.cpu_s = 0.0
        """CPU time of the watchdog's own thread."""
        try:
            self._thread = start_thread(self._run, "sc2pool-watchdog")
        except OSError:
            self.doorbell.close()
            raise

    def verdicts(self) -> list[Verdict]:
        """The verdicts since the last call."""
        return [self._verdicts.get_nowait() for _ in range(self._verdicts.qsize())]

    def samples(self) -> dict[int, Sample]:
        """The newest sample of each instance."""
        return dict(self._previous)

    @property
    def is_this_thread(self) -> bool:
        """True if the caller is the watchdog's own thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End the thread, which closes the doorbell."""
        self._stop.set()
        if sys.is_finalizing():  # the thread no longer runs when the interpreter exits
            self.doorbell.close()
        else:  # wait with a limit, because a signal handler may hold a lock that the thread needs
            self._thread.join(_ENDS_WITHIN_S)

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self.doorbell.close()

    def _watch(self) -> None:
        sampled_at_s = time.monotonic()
        blind = False
        while not self._stop.wait(min(self._interval_s, threading.TIMEOUT_MAX)):
            now_s = time.monotonic()
            gap = now_s - sampled_at_s > _GAP_FACTOR * self._interval_s
            sampled_at_s = now_s
            try:
                self._sample(after_gap=gap or blind)
                self._after_sample(self._previous)
                blind = False
            except OSError as error:
                if not blind:
                    log.warning("the watchdog cannot inspect the processes: %s", str(error))
                blind = True
            except Exception:  # the thread must go on, because its end would be noticed late
                log.exception("the watchdog has failed to take a sample")
            self.cpu_s = time.thread_time()

    def _sample(self, *, after_gap: bool) -> None:
        first: dict[int, Sample] = {}
        newest: dict[int, Sample] = {}
        found = False
        all_watched = self._watched()
        processes = self._table.read()
        for watched in all_watched:
            now = take_sample(watched, processes)
            number = watched.instance
            newest[number] = now
            in_first_episode = watched.episodes <= 1
            first[number] = now if in_first_episode else self._first.get(number, now)
            previous = None if after_gap else self._previous.get(number)
            verdict = decide(first[number], previous, now, self._policy)
            if verdict is not None:
                self._verdicts.put(verdict)
                found = True
        self._first, self._previous = first, newest
        if found:
            self.doorbell.ring()


def take_sample(watched: Watched, processes: Processes) -> Sample:
    """Sample an instance; if it has no game, all processes below its worker count as the worker."""
    sample = _resources(watched, processes)
    since_s = watched.awaited_since_s
    if since_s is None or sample.at_s - since_s <= watched.limit_s / 2:
        return sample
    pids = [watched.worker_pid, *watched.game_pids]
    return replace(sample, waited_s=sum(map(waited_s, pids)), is_ready=any(map(is_ready, pids)))


def _resources(watched: Watched, processes: Processes) -> Sample:
    worker = processes.at(watched.worker_pid)
    own = [worker] if worker else []
    if not watched.alone:
        game = [row for pid in watched.game_pids for row in processes.tree(pid)]
    else:
        game = processes.below(watched.worker_pid)
        if not watched.game_pids:
            # An env of the user can stop its own processes, so only a stop of the worker counts.
            own += [row._replace(stopped=False) for row in game if worker]
            game = []
    stopped = _stopped_games(watched, processes)
    return Sample(time.monotonic(), watched, as_one(own), as_one(game), stopped)


def _stopped_games(watched: Watched, processes: Processes) -> Sequence[int]:
    if len(watched.game_pids) < 2:
        return ()  # a single game needs no index
    trees = [processes.tree(pid) for pid in watched.game_pids]
    return [i for i, tree in enumerate(trees) if any(row.stopped for row in tree)]


def as_one(rows: Sequence[ProcessRow]) -> ProcessSample | None:
    """The sum of several processes; None for an empty sequence."""
    if not rows:
        return None
    return ProcessSample(
        any(row.stopped for row in rows),
        sum(row.rss_bytes for row in rows),
        sum(row.cpu_s for row in rows),
    )


def bytes_of(pid: int) -> int:
    """Resident memory of this process and all below it; 0 if it cannot be read."""
    with suppress(OSError):
        return sum(row.rss_bytes for row in process_table(os.getpid()).read().tree(pid))
    return 0


def memory_warning(first: Sequence[int], instances: int, free_bytes: int) -> str | None:
    """A warning if the memory is too small for all instances; None if they fit.

    Call this while only one instance runs; `first` has the memory of each of its games.
    """
    if sum(first) * (instances - 1) <= free_bytes:
        return None
    running = "the first is" if len(first) == 1 else f"the first {len(first)} are"
    return (
        f"{len(first) * instances} games of {max(first) / 1e6:,.0f} MB each will not fit: "
        f"{running} running, and {free_bytes / 1e6:,.0f} MB are free; take fewer envs or spares"
    )
