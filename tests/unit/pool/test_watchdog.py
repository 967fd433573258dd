"""Tests the watchdog's verdicts on its samples, and the watchdog's thread with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import psutil
import pytest

from sc2pool.config import RecyclePolicy
from sc2pool.errors import FaultKind
from sc2pool.platform import LINUX
from sc2pool.pool.queues.doorbell import Waiter
from sc2pool.pool.watchdog import (
    ProcessSample,
    Sample,
    Verdict,
    Watchdog,
    Watched,
    decide,
    memory_warning,
    take_sample,
)
from sc2pool.processes.tree import Processes, ProcessRow

MB = 1_000_000
POLICY = RecyclePolicy(
    soft_memory_bytes=2000 * MB, hard_memory_bytes=4000 * MB, growth_bytes=1000 * MB
)
UNLIMITED = RecyclePolicy(soft_memory_bytes=None, hard_memory_bytes=None, growth_bytes=None)
GAME = ProcessSample(stopped=False, rss_bytes=100 * MB, cpu_s=5.0)
WORKER = ProcessSample(stopped=False, rss_bytes=60 * MB, cpu_s=2.0)
WATCHED = Watched(instance=7, worker_pid=1, game_pids=[2], awaited_since_s=None, limit_s=10.0)
BEFORE = Sample(99.0, WATCHED, WORKER, GAME)
NOW = Sample(100.0, WATCHED, WORKER, GAME)


def awaited(sample: Sample, since_s: float | None) -> Sample:
    return replace(sample, watched=replace(sample.watched, awaited_since_s=since_s))


def game(sample: Sample, **what: object) -> Sample:
    return replace(sample, game=replace(GAME, **what))


def paused(sample: Sample, pauses: int, now: bool = True) -> Sample:
    """A sample of a stopped game after this number of pauses; if `now`, the pool pauses it."""
    watched = replace(sample.watched, paused=now, pauses=pauses)
    return replace(game(sample, stopped=True), watched=watched)


def worker(sample: Sample, **what: object) -> Sample:
    return replace(sample, worker=replace(WORKER, **what))


def stopped_worker(sample: Sample) -> Sample:
    return worker(sample, stopped=True)


def large(rss_bytes: int) -> Sample:
    return game(NOW, rss_bytes=rss_bytes)


def without_game(sample: Sample, rss_bytes: int = 60 * MB) -> Sample:
    return replace(worker(sample, rss_bytes=rss_bytes), game=None)


def shared_worker(rss_bytes: int) -> Sample:
    return replace(worker(NOW, rss_bytes=rss_bytes), watched=replace(WATCHED, alone=False))


STOPPED_THEN, STOPPED_NOW = (game(sample, stopped=True) for sample in (BEFORE, NOW))
AWAITED_THEN, AWAITED_NOW = (awaited(sample, 80.0) for sample in (BEFORE, NOW))
STOPPED, MEMORY, HUNG = FaultKind.STOPPED, FaultKind.MEMORY, FaultKind.HUNG
SOFT = "soft"


def case(
    name: str,
    now: Sample,
    expected: FaultKind | str | None,
    *,
    first: Sample = BEFORE,
    previous: Sample | None = BEFORE,
    policy: RecyclePolicy = POLICY,
) -> object:
    """A case: name, newest sample and verdict; by default the sample before was normal."""
    return pytest.param(first, previous, now, policy, expected, id=name)


def twice(name: str, what: Callable[[Sample], Sample], expected: FaultKind | None) -> object:
    """A case in which the sample before the newest sample shows the same state."""
    return case(name, what(NOW), expected, previous=what(BEFORE))


@pytest.mark.parametrize(
    ("first", "previous", "now", "policy", "expected"),
    [
        case("all is well", NOW, None),
        case("the very first sample", NOW, None, first=NOW, previous=None),
        # Stopped: the verdict needs two samples in a row with the same stopped process.
        case("game stopped once", STOPPED_NOW, None),
        twice("game stopped twice", lambda sample: game(sample, stopped=True), STOPPED),
        twice("worker stopped twice", stopped_worker, STOPPED),
        twice("paused", lambda sample: paused(sample, 1), None),
        case("about to be paused", paused(NOW, 1), None, previous=STOPPED_THEN),
        case("paused anew", paused(NOW, 2, False), None, previous=paused(BEFORE, 1, False)),
        twice("stopped, and not paused for long", lambda sample: paused(sample, 1, False), STOPPED),
        twice("worker stopped in a pause", lambda it: stopped_worker(paused(it, 1)), STOPPED),
        case("first the one, then the other", stopped_worker(NOW), None, previous=STOPPED_THEN),
        case("continued", NOW, None, previous=STOPPED_THEN),
        case("stopped, after a gap", STOPPED_NOW, None, previous=None),
        case("stopped, then gone", without_game(NOW), None, previous=STOPPED_THEN),
        # Memory: the memory of game and worker is added up; the worker has 60 MB.
        case("at the hard limit", large(3940 * MB), SOFT),
        case("over the hard limit", large(3940 * MB + 1), MEMORY),
        case("over it, after a gap", large(5000 * MB), MEMORY, previous=None),
        case("worker's memory beside a game", worker(NOW, rss_bytes=9000 * MB), MEMORY),
        case("worker's without", without_game(NOW, 9000 * MB), MEMORY),
        case("no limits", large(9000 * MB), None, policy=UNLIMITED),
        case("at the soft limit", large(1940 * MB), None, first=large(1940 * MB)),
        case("over the soft limit", large(2000 * MB + 1), SOFT, first=large(2000 * MB)),
        case("grown as much as it may", large(1100 * MB), None),
        case("grown more", large(1100 * MB + 1), SOFT),
        # Hung: no reply has come within the time limit, and no CPU time has been used since.
        twice("patience at its end", lambda sample: awaited(sample, 90.0), None),
        twice("past it, idle", lambda sample: awaited(sample, 89.9), HUNG),
        case("past it, after a gap", awaited(NOW, 89.9), None, previous=None),
        case("another reply is awaited", awaited(NOW, 89.9), None, previous=AWAITED_THEN),
        case("past it, game slow", game(AWAITED_NOW, cpu_s=5.5), None, previous=AWAITED_THEN),
        case("past it, worker slow", worker(AWAITED_NOW, cpu_s=2.5), None, previous=AWAITED_THEN),
        case("past it, hardly busy", game(AWAITED_NOW, cpu_s=5.009), HUNG, previous=AWAITED_THEN),
        twice("past it, no game yet", lambda sample: without_game(awaited(sample, 80.0)), HUNG),
        # If two verdicts are possible, the more serious one is given.
        twice(
            "stopped and too large", lambda it: game(it, stopped=True, rss_bytes=9000 * MB), STOPPED
        ),
        twice(
            "hung and over the soft limit",
            lambda it: awaited(game(it, rss_bytes=3000 * MB), 80.0),
            HUNG,
        ),
        case(
            "hung, and its shared worker over the soft limit",
            awaited(shared_worker(3950 * MB), 80.0),
            HUNG,
            previous=AWAITED_THEN,
        ),
        # A shared worker's memory is not added to its games' memory, but has the same limits.
        case("shared", shared_worker(3950 * MB), SOFT),
        case("shared and too large", shared_worker(4001 * MB), MEMORY),
        case("both gone", Sample(100.0, WATCHED, None, None), None),
    ],
)
def test_decide(first, previous, now, policy, expected):
    verdict = decide(first, previous, now, policy)
    if expected is None:
        assert verdict is None
    else:
        assert verdict.instance == 7
        assert verdict.detail
        assert verdict.kind == (None if expected == SOFT else expected)


def late(sample: Sample, waited_s: float | None, *, is_ready: bool = False) -> Sample:
    """A sample of a game long past its limit; it has waited `waited_s` for a processor."""
    return replace(awaited(sample, 80.0), waited_s=waited_s, is_ready=is_ready)


@pytest.mark.parametrize(
    ("previous", "now", "starved"),
    [
        (late(BEFORE, 3.0), late(NOW, 3.6), True),
        (late(BEFORE, 3.0), late(NOW, 3.4), False),
        (late(BEFORE, 3.0, is_ready=True), late(NOW, 3.0, is_ready=True), True),
        (late(BEFORE, 3.0), late(NOW, 3.0, is_ready=True), False),
        (late(BEFORE, None), late(NOW, 3.0), False),
    ],
    ids=["much of the time", "little", "still", "only now", "unknown"],
)
def test_a_process_that_waits_for_a_processor_is_starved_not_hung(previous, now, starved):
    verdict = decide(BEFORE, previous, now, POLICY)
    assert verdict.starved == starved
    assert verdict.kind == (None if starved else HUNG)
    assert ("the machine is too busy" in verdict.detail) == starved


def test_verdicts_name_their_figures():
    verdict = decide(BEFORE, BEFORE, game(NOW, rss_bytes=4321 * MB), POLICY)
    assert verdict == Verdict(
        7, FaultKind.MEMORY, "4,381 MB resident, over the hard limit of 4,000 MB"
    )


def watch(*watched: Watched) -> Watchdog:
    return Watchdog(lambda: list(watched), UNLIMITED, interval_s=0.05)


def next_verdict(dog: Watchdog) -> Verdict:
    """The next verdict that does not blame a busy machine; waits on the doorbell."""
    with closing(Waiter.create()) as waiter:
        waiter.add_doorbell(dog.doorbell, None)
        while True:
            assert waiter.wait(10.0) == [None]
            dog.doorbell.quiet()
            for verdict in dog.verdicts():
                if not verdict.starved:
                    return verdict


def test_the_thread_sees_a_stopped_process_and_rings(sleeper):
    with closing(watch(Watched(3, sleeper.pid, [], None, 0.0))) as dog:
        assert dog.verdicts() == []
        psutil.Process(sleeper.pid).suspend()
        verdict = next_verdict(dog)
        assert (verdict.instance, verdict.kind) == (3, FaultKind.STOPPED)
        assert "worker was stopped" in verdict.detail
        assert dog.samples()[3].worker.stopped


def test_the_thread_sees_an_idle_process_hang(sleeper):
    with closing(watch(Watched(3, sleeper.pid, [], awaited_since_s=0.0, limit_s=0.1))) as dog:
        assert next_verdict(dog).kind is FaultKind.HUNG


SPINS = (sys.executable, "-S", "-c", "while True: pass")


@pytest.fixture
def starved():
    """A process that wants to run, but another process takes the only processor that it may use."""
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen(SPINS) as busy, subprocess.Popen(SPINS) as process:
        for one in (busy, process):
            os.sched_setaffinity(one.pid, {core})
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
        yield process
        process.kill()
        busy.kill()


@pytest.mark.skipif(not LINUX, reason="only Linux tells who waits for a processor")
def test_the_thread_does_not_take_a_starved_process_for_hung(starved):
    """A starved process seldom runs, and a wait for a processor is counted only at its end."""
    watched = Watched(3, starved.pid, [], awaited_since_s=0.0, limit_s=0.1)
    verdicts: list[Verdict] = []
    with (
        closing(Watchdog(lambda: [watched], UNLIMITED, interval_s=0.2)) as dog,
        closing(Waiter.create()) as waiter,
    ):
        waiter.add_doorbell(dog.doorbell, None)
        while len(verdicts) < 10:
            assert waiter.wait(10.0) == [None]
            dog.doorbell.quiet()
            verdicts += dog.verdicts()
    assert {verdict.kind for verdict in verdicts} == {None}
    assert all(verdict.starved for verdict in verdicts)


def test_thread_survives_errors_of_inspection(sleeper, caplog):
    samples = iter([RuntimeError("as if")])
    again = threading.Event()

    def watched() -> list[Watched]:
        for error in samples:
            raise error
        again.set()
        return [Watched(0, sleeper.pid, [], None, 0.0)]

    with closing(Watchdog(watched, UNLIMITED, interval_s=0.01)):
        assert again.wait(10.0)
    assert "has failed to take a sample" in caplog.text


def test_close_does_not_wait_for_a_callback_that_is_blocked(sleeper, monkeypatch):
    """The callback may need a lock that is held by the thread that closes the watchdog."""
    monkeypatch.setattr("sc2pool.pool.watchdog._ENDS_WITHIN_S", 0.05)
    blocked, goes_on = threading.Event(), threading.Event()

    def after_sample(_: object) -> None:
        blocked.set()
        goes_on.wait()

    dog = Watchdog(lambda: [Watched(0, sleeper.pid, [], None, 0.0)], UNLIMITED, 0.01, after_sample)
    assert blocked.wait(10.0)
    dog.close()
    assert dog._thread.is_alive()
    goes_on.set()
    dog._thread.join()


@pytest.mark.timing
def test_watchdog_counts_its_cpu_time(sleeper, wait_for):
    with closing(watch(Watched(0, sleeper.pid, [], None, 0.0))) as dog:
        wait_for(lambda: dog.cpu_s > 0.0)
        assert dog.cpu_s < 1.0


PARENT, WORKER_PID, SCRIPT_PID, GAME_PID = 1, 10, 11, 12
ROWS = {
    WORKER_PID: ProcessRow(PARENT, False, 60 * MB, 2.0),
    SCRIPT_PID: ProcessRow(WORKER_PID, False, 1 * MB, 0.25),
    GAME_PID: ProcessRow(SCRIPT_PID, False, 100 * MB, 5.0),
}


def sampled(game_pids: list[int], stopped: int = 0) -> Sample:
    rows = {pid: row._replace(stopped=pid == stopped) for pid, row in ROWS.items()}
    return take_sample(Watched(7, WORKER_PID, game_pids, None, 0.0), Processes(rows))


def test_a_game_is_all_below_its_worker():
    """A game may consist of several processes: a script as executable may start the game."""
    sample = sampled([GAME_PID])
    assert sample.worker == ProcessSample(False, 60 * MB, 2.0)
    assert sample.game == ProcessSample(False, 101 * MB, 5.25)
    sample = sampled([GAME_PID], stopped=GAME_PID)
    assert sample.game.stopped
    assert not sample.worker.stopped


def test_without_a_game_all_is_the_workers():
    sample = sampled([])
    assert sample.game is None
    assert sample.worker == ProcessSample(False, 161 * MB, 7.25)
    its_own = sampled([], stopped=GAME_PID)
    assert not its_own.worker.stopped, "what an env does with its processes is its own affair"
    assert sampled([], stopped=WORKER_PID).worker.stopped


OTHER_PID = 5005


def test_a_match_is_both_of_its_games():
    rows = ROWS | {OTHER_PID: ProcessRow(WORKER_PID, True, 30 * MB, 1.0)}
    for alone, game in ((True, (131 * MB, 6.25)), (False, (130 * MB, 6.0))):
        watched = Watched(7, WORKER_PID, [GAME_PID, OTHER_PID], None, 0.0, alone=alone)
        sample = take_sample(watched, Processes(rows))
        assert sample.game == ProcessSample(True, *game), "the guest is stopped"
        both = 191 * MB if alone else 130 * MB
        policy = replace(UNLIMITED, hard_memory_bytes=both // 2 + MB)
        verdict = decide(sample, None, sample, policy)
        assert verdict is None, "the limit is for each game"
        verdict = decide(sample, None, sample, replace(policy, hard_memory_bytes=both // 2 - MB))
        assert verdict.kind is FaultKind.MEMORY
        assert f"over the hard limit of {both / MB - 2:.0f} MB" in verdict.detail


def test_ended_process_has_no_sample():
    sample = take_sample(Watched(7, 999, [1000], None, 0.0), Processes(ROWS))
    assert (sample.worker, sample.game) == (None, None)


def test_the_thread_survives_without_a_free_descriptor(sleeper, caplog, limited):
    """The thread warns once that it cannot take samples, and continues to try."""
    samples = threading.Semaphore(0)

    def watched() -> list[Watched]:
        samples.release()
        return [Watched(3, sleeper.pid, [], None, 0.0)]

    with closing(Watchdog(watched, UNLIMITED, interval_s=0.02)) as dog:
        psutil.Process(sleeper.pid).suspend()
        with limited("NOFILE", 0):
            for _ in range(4):
                assert samples.acquire(timeout=300)
        assert next_verdict(dog).kind is FaultKind.STOPPED
    assert caplog.text.count("the watchdog cannot inspect the processes: [Errno 24]") == 1


def test_growth_counts_from_the_end_of_the_first_episode(monkeypatch):
    """A game's memory grows when it loads its first map, and this growth is no leak."""
    limit = replace(UNLIMITED, growth_bytes=1000 * MB)
    history = iter([(1, 100), (1, 300), (2, 1250), (3, 1350)])
    now = [next(history)]

    class Table:
        def read(self) -> Processes:
            megabytes = now[0][1]
            now[:] = [next(history, now[0])]
            return Processes({WORKER_PID: ProcessRow(PARENT, False, megabytes * MB, 0.0)})

    monkeypatch.setattr("sc2pool.pool.watchdog.process_table", lambda _: Table())
    watched = Watched(7, WORKER_PID, [], None, 0.0)
    with closing(
        Watchdog(lambda: [replace(watched, episodes=now[0][0])], limit, interval_s=0.01)
    ) as dog:
        assert next_verdict(dog).detail == "grown by 1,050 MB"


@pytest.mark.parametrize(
    ("free_mb", "said"),
    [(700, None), (699, "8 games of 100 MB each will not fit")],
)
def test_memory_warning(free_mb, said):
    two = memory_warning([50 * MB, 50 * MB], 8, free_mb * MB)
    assert (two is None) == (said is None)
    assert two is None or "16 games of 50 MB each will not fit: the first 2 are running" in two
    warning = memory_warning([100 * MB], 8, free_mb * MB)
    assert warning is None if said is None else said in warning


MATCH = replace(WATCHED, game_pids=[2, 3])


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ([0], [0], "host: the game was stopped"),
        ([1], [1], "guest: the game was stopped"),
        ([0, 1], [0, 1], "host and guest: the game was stopped"),
        ([0, 1], [1], "guest: the game was stopped"),
        ([0], [1], "the game was stopped"),
    ],
)
def test_the_stopped_side_of_a_match_is_named(before, now, named):
    stopped = [
        replace(game(sample, stopped=True), watched=MATCH, stopped_games=sides)
        for sample, sides in ((BEFORE, before), (NOW, now))
    ]
    verdict = decide(BEFORE, *stopped, POLICY)
    assert verdict is not None and verdict.detail.startswith(named)


def test_which_game_is_stopped():
    def row(parent_pid: int, stopped: bool) -> ProcessRow:
        return ProcessRow(parent_pid, stopped, 100 * MB, 1.0)

    rows = {1: row(0, False), 2: row(1, False), 3: row(1, False), 4: row(3, True)}
    processes = Processes(rows)
    for alone in (True, False):
        assert take_sample(replace(MATCH, alone=alone), processes).stopped_games == [1]
    assert take_sample(replace(WATCHED, game_pids=[3]), processes).stopped_games == ()
