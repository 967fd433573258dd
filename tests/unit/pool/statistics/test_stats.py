"""What a pool counts of itself."""

from __future__ import annotations

import math
import signal

import pytest

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.clock import Tick
from sc2pool.platform import WINDOWS
from sc2pool.pool.statistics.stats import (
    RETURNS_KEPT,
    Counters,
    PauseStats,
    PoolStats,
)


def stats_of(counters: Counters) -> PoolStats:
    return counters.snapshot([], steps_per_s=None, watchdog_cpu_s=0.0)


def test_a_new_pool_has_counted_nothing():
    stats = stats_of(Counters())
    assert (stats.launches, stats.resets, stats.env_steps, stats.episodes) == (0, 0, 0, 0)
    assert (stats.game_version, stats.base_build) == (None, None)
    assert (stats.recycles, stats.faults, stats.events) == ({}, 0, [])
    assert (stats.reset_s, stats.recovery_s) == ({}, None)
    assert stats.pauses == PauseStats(0, 0.0, 0)


@pytest.mark.skipif(WINDOWS, reason="it has no timer that sends signals")
def test_a_signal_handler_may_ask_in_the_midst_of_a_count():
    counters = Counters()
    handled = 0

    def ask(*_):
        nonlocal handled
        handled += 1
        stats_of(counters)

    before = signal.signal(signal.SIGALRM, ask)
    try:
        while handled < 300:
            signal.setitimer(signal.ITIMER_REAL, 0.0001)
            for _ in range(300):
                counters.count_reset("restart_game", 0.5)
                counters.lateness.note(0, Tick(0.01, 0, 0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stats_of(counters).realtime.steps == stats_of(counters).resets


def test_recycles_are_counted_by_cause_and_seat():
    counters = Counters()
    counters.count_fault("env 1", 4, Fault(FaultKind.DEADLINE, Phase.STEPPING, "slow"))
    counters.count_fault("env 1", 6, Fault(FaultKind.DEADLINE, Phase.RESETTING, "slow"))
    counters.count_recycle("spare 2", 5, "age")
    stats = stats_of(counters)
    assert stats.recycles == {"deadline": 2, "soft-age": 1}
    assert stats.faults == 2
    assert counters.recycles_by_seat() == {"env 1": {"deadline": 2}, "spare 2": {"soft-age": 1}}
    fault, _, recycle = stats.events
    assert (fault.event, fault.seat, fault.instance) == ("fault", "env 1", 4)
    assert (fault.cause, fault.phase, fault.detail) == ("deadline", "stepping", "slow")
    assert (recycle.event, recycle.cause) == ("recycle", "soft-age")
    assert 0 < fault.at_s <= recycle.at_s <= stats.at_s


def test_the_mean_return_is_that_of_the_newest_whole_episodes():
    counters = Counters()
    assert stats_of(counters).mean_return is None
    counters.count_episode("env 0", None)
    counters.count_episode("env 1", math.nan)
    assert stats_of(counters).mean_return is None
    for episode_return in range(RETURNS_KEPT + 10):
        counters.count_episode("env 1", float(episode_return))
    assert stats_of(counters).mean_return == 10 + (RETURNS_KEPT - 1) / 2
    assert stats_of(counters).episodes == RETURNS_KEPT + 12
    assert counters.episodes_by_seat() == {"env 0": 1, "env 1": RETURNS_KEPT + 11}


def test_pauses_are_summed():
    counters = Counters()
    counters.count_pause(1.5, 3)
    counters.count_pause(0.5, None)
    assert stats_of(counters).pauses == PauseStats(2, 2.0, 3)


def test_counters_are_read_whole_while_they_are_counted(meanwhile):
    counters = Counters()

    def count(turn: int) -> None:
        if turn < 2000:
            counters.count_reset(f"kind {turn}", 1.0)  # the dict grows under the reader
        counters.count_fault(f"env {turn % 500}", turn, Fault(FaultKind.HUNG, Phase.IDLE, "…"))
        counters.count_recycle(f"env {turn % 500}", turn, "age")
        counters.count_recovery(1.0)

    with meanwhile(count):
        while counters.resets < 2000:
            stats = stats_of(counters)
            assert stats.resets == len(stats.reset_s)
            # A fault and the soft recycle after it are two counts, one apart at most.
            causes = stats.recycles
            assert 0 <= causes.get("hung", 0) - causes.get("soft-age", 0) <= 1
            assert len(stats.events) == min(1000, sum(causes.values()))
            assert sum(map(len, counters.recycles_by_seat().values())) <= 1000
