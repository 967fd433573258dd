"""Tests the statistics of one pool and of several pools: counters, durations, matches, history."""

from __future__ import annotations

import json
import math
import signal

import pytest

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.clock import Tick
from sc2pool.platform import WINDOWS
from sc2pool.pool.measures import (
    MOST_OPPONENTS,
    NAMES_KEPT,
    OTHERS,
    POINTS,
    DurationCounter,
    Durations,
    HeldSpares,
    History,
    Lateness,
    LatenessCounter,
    MatchCounter,
    MatchResults,
    Rates,
    figures,
    summed,
)
from sc2pool.pool.report.snapshot import merge_curves, merge_stats, stats_from_dict
from sc2pool.pool.statistics import (
    RETURNS_KEPT,
    Counters,
    InstanceStats,
    PauseStats,
    PoolEvent,
    PoolStats,
)
from tests.unit.conftest import printed_by
from tests.unit.pool.conftest import meanwhile

# ---- counters ------------------------------------------------------------------------------------


def stats_of(counters: Counters) -> PoolStats:
    return counters.snapshot([], steps_per_s=None, watchdog_cpu_s=0.0)


def test_a_new_pool_has_counted_nothing():
    stats = stats_of(Counters())
    assert (stats.launches, stats.resets, stats.env_steps, stats.episodes) == (0, 0, 0, 0)
    assert (stats.game_version, stats.base_build) == (None, None)
    assert (stats.replacements, stats.faults, stats.events) == ({}, 0, [])
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


def test_replacements_are_counted_by_cause_and_seat():
    counters = Counters()
    counters.count_fault("env 1", 4, Fault(FaultKind.DEADLINE, Phase.STEPPING, "slow"))
    counters.count_fault("env 1", 6, Fault(FaultKind.DEADLINE, Phase.RESETTING, "slow"))
    counters.count_recycle("spare 2", 5, "age")
    stats = stats_of(counters)
    assert stats.replacements == {"deadline": 2, "soft-age": 1}
    assert stats.faults == 2
    assert counters.replacements_by_seat() == {"env 1": {"deadline": 2}, "spare 2": {"soft-age": 1}}
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


def test_counters_are_read_whole_while_they_are_counted():
    counters = Counters()

    def count(turn: int) -> None:
        if turn < 2000:
            counters.count_reset(f"kind {turn}", 1.0)  # the dict grows while it is read
        counters.count_fault(f"env {turn % 500}", turn, Fault(FaultKind.HUNG, Phase.IDLE, "…"))
        counters.count_recycle(f"env {turn % 500}", turn, "age")
        counters.count_recovery(1.0)

    with meanwhile(count):
        while counters.resets < 2000:
            stats = stats_of(counters)
            assert stats.resets == len(stats.reset_s)
            # A fault is counted before its soft recycle, so the two counts may differ by one.
            causes = stats.replacements
            assert 0 <= causes.get("hung", 0) - causes.get("soft-age", 0) <= 1
            assert len(stats.events) == min(1000, sum(causes.values()))
            assert sum(map(len, counters.replacements_by_seat().values())) <= 1000


# ---- percentiles of durations --------------------------------------------------------------------


def counter(*durations_s: float) -> DurationCounter:
    made = DurationCounter()
    for duration_s in durations_s:
        made.add(duration_s)
    return made


def test_percentiles_are_interpolated():
    assert Durations.of([2.0]) == Durations(1, p50=2.0, p95=2.0, p99=2.0, max=2.0)
    hundred = [float(number) for number in range(100, -1, -1)]
    assert Durations.of(hundred) == Durations(101, p50=50.0, p95=95.0, p99=99.0, max=100.0)
    assert Durations.of([1.0, 2.0]).p50 == 1.5


def test_nothing_has_no_figures():
    assert figures() is None
    assert figures(DurationCounter()) is None


def test_percentiles_are_those_of_the_newest_thousand():
    took = figures(counter(*(float(number) for number in range(5000, 0, -1))))
    assert (took.count, took.max) == (5000, 5000.0)
    assert took.p50 == pytest.approx(500.5)


def test_several_together():
    took = figures(counter(1.0, 1.0), DurationCounter(), counter(4.0))
    assert (took.count, took.p50, took.max) == (3, 1.0, 4.0)


def test_figures_need_no_file_of_a_package():
    """Durations import no module, because Python cannot import while no descriptor is free."""
    printed_by("""
import sys
from sc2pool.pool.measures import Durations
before = set(sys.modules)
Durations.of([1.0, 2.0])
assert set(sys.modules) == before, set(sys.modules) - before
""")


# ---- late actions --------------------------------------------------------------------------------


def test_the_one_long_gap_is_not_hidden():
    ticks = LatenessCounter()
    for _ in range(199):
        ticks.note(0, Tick(0.01, 0, 0))
    ticks.note(0, Tick(2.0, 11, 36))
    stats = ticks.snapshot()
    assert stats.gap_s == Durations(200, p50=0.01, p95=0.01, p99=0.01, max=2.0)
    assert (stats.steps, stats.misses) == (200, 1)
    assert (stats.lost_periods, stats.skipped_loops) == (11, 36)


def test_each_env_by_itself_and_all_together():
    ticks = LatenessCounter()
    ticks.note(3, Tick(0.3, 0, 0))
    ticks.note(1, Tick(0.1, 2, 8))
    ticks.note(1, Tick(0.1, 1, 0))
    stats = ticks.snapshot()
    assert list(stats.envs) == ["env 1", "env 3"]
    assert stats.envs["env 1"] == Lateness(
        steps=2,
        gap_s=Durations(2, p50=0.1, p95=0.1, p99=0.1, max=0.1),
        misses=2,
        lost_periods=3,
        skipped_loops=8,
    )
    assert stats.envs["env 3"].misses == 0
    assert (stats.gap_s.p50, stats.gap_s.max) == (0.1, 0.3)
    assert stats.steps == 3


def test_spares():
    ticks = LatenessCounter()
    assert ticks.snapshot().spares == HeldSpares(0, 0, "")
    for loops in (3, None, 4):
        ticks.note_hold(loops)
    assert ticks.note_problem("may not be stopped")
    assert not ticks.note_problem("may not be stopped")
    assert ticks.snapshot().spares == HeldSpares(3, 7, "may not be stopped")


# ---- results of matches by opponent --------------------------------------------------------------


def counted(*matches: tuple[str, str]) -> dict[str, MatchResults]:
    counter = MatchCounter()
    for opponent, result in matches:
        counter.count(opponent, result)
    return counter.results()


def test_results_are_counted_by_opponent():
    results = counted(("a", "win"), ("b", "loss"), ("a", "tie"), ("a", "win"), ("b", "undecided"))
    assert results == {"a": MatchResults(win=2, tie=1), "b": MatchResults(loss=1, undecided=1)}
    assert (results["a"].played, results["b"].played) == (3, 2)
    assert (results["a"].win_rate, results["b"].win_rate) == (2 / 3, 0.0)
    assert MatchResults().win_rate == 0.0


def test_the_opponent_met_last_is_first():
    assert list(counted(("a", "win"), ("b", "win"), ("a", "win"))) == ["a", "b"]


def test_those_not_met_for_longest_are_summed_up():
    matches = [(f"step-{n}", "win") for n in range(MOST_OPPONENTS)]
    results = counted(*matches, ("step-0", "loss"), ("new", "tie"), ("newer", "tie"))
    assert len(results) == MOST_OPPONENTS + 1
    assert list(results)[-1] == OTHERS
    assert results[OTHERS] == MatchResults(win=2), "step-1 and step-2"
    assert results["step-0"] == MatchResults(win=1, loss=1), "met again in between"
    assert not {"step-1", "step-2"} & set(results)


def test_no_match_is_lost_or_counted_twice():
    """An opponent may come back, or may have the name under which other opponents are summed up."""
    names = [OTHERS, *(f"step-{n}" for n in range(2 * MOST_OPPONENTS))]
    matches = [(name, "win") for name in names * 3]
    results = counted(*matches)
    assert sum(one.played for one in results.values()) == len(matches)


def test_several_pools_are_one():
    parts = [counted(("a", "win"), ("b", "tie")), {}, counted(("a", "loss"))]
    assert summed(parts) == {"a": MatchResults(win=1, loss=1), "b": MatchResults(tie=1)}


# ---- history and rates ---------------------------------------------------------------------------


def test_samples_are_kept_at_their_interval():
    history = History(interval_s=1.0)
    for tenth in range(21):
        history.note(tenth / 10, 10 * tenth, {"mean return": float(tenth)})
    assert history.changes == 3
    assert history.as_dict() == {
        "at_s": [0.0, 1.0, 2.0],
        "steps": [0, 100, 200],
        "figures": {"mean return": [0.0, 10.0, 20.0]},
    }


def test_a_full_history_halves_its_resolution_and_still_covers_the_run():
    history = History(interval_s=1.0)
    for second in range(20 * POINTS):
        history.note(second, second, {"x": second})
    told = history.as_dict()
    assert POINTS / 2 <= len(told["at_s"]) < POINTS
    assert told["at_s"][0] == 0
    gaps = {later - earlier for earlier, later in zip(told["at_s"], told["at_s"][1:], strict=False)}
    assert len(gaps) <= 2, "even, but where the interval has just doubled"
    assert 20 * POINTS - told["at_s"][-1] <= max(gaps)


def test_a_figure_that_comes_later_or_is_not_finite_is_none():
    history = History(interval_s=0.0)
    history.note(0.0, 0, {"mean return": None, "steps/s": 3.0})
    history.note(1.0, 5, {"mean return": 1.234567, "loss": math.nan})
    told = json.loads(json.dumps(history.as_dict(), allow_nan=False))
    assert told["figures"] == {"steps/s": [3.0, None], "mean return": [None, 1.2346]}


@pytest.mark.parametrize("count", [NAMES_KEPT, NAMES_KEPT + 1, 10 * NAMES_KEPT])
def test_the_names_are_bounded(count):
    history = History(interval_s=0.0)
    for turn in range(count):
        history.note(turn, turn, {f"name {turn}": 1.0})
    assert len(history.as_dict()["figures"]) == NAMES_KEPT


WINDOW_S = 5.0


def test_rates_are_those_of_the_newest_seconds():
    rates = Rates(WINDOW_S)
    rates.note(0.0, {"steps": 0})
    assert rates.per_s("steps") is None
    for second in range(1, 21):
        rates.note(float(second), {"steps": 10 * min(second, 10) + 100 * max(0, second - 10)})
    assert rates.per_s("steps") == pytest.approx(100)
    assert rates.per_s("other") is None


def test_a_counter_that_is_new_or_gone_has_the_rate_of_its_own_time():
    rates = Rates(WINDOW_S)
    rates.note(0.0, {"old": 0})
    rates.note(1.0, {"old": 5, "new": 100})
    assert rates.per_s("new") is None
    rates.note(2.0, {"new": 130})
    assert rates.per_s("new") == pytest.approx(30)
    assert rates.per_s("old") is None


def test_rates_remember_no_more_than_they_need():
    rates = Rates(WINDOW_S)
    for second in range(1000):
        rates.note(float(second), {"steps": second})
    assert len(rates._notes) <= WINDOW_S + 2


@pytest.mark.parametrize("window_s", [0.0, WINDOW_S])
def test_rates_after_a_gap(window_s):
    """After a long gap between notes (as after Ctrl-Z), the rate covers the gap."""
    rates = Rates(window_s)
    rates.note(0.0, {"steps": 0})
    rates.note(1.0, {"steps": 10})
    rates.note(3600.0, {"steps": 20})
    assert rates.per_s("steps") == pytest.approx(10 / 3599)


# ---- several pools as one ------------------------------------------------------------------------


def row(seat: str, instance: int) -> InstanceStats:
    return InstanceStats(
        seat, instance, "playing", 0, 10, 5, 1.0, 100, 200, 5000, "proven", 10**6, 1.0
    )


def part(
    *seats: str, returns: tuple[float, ...] = (), faults: int = 0, results: tuple[str, ...] = ()
) -> PoolStats:
    counters = Counters()
    counters.env_steps = 100
    for value in returns:
        counters.count_episode("env 0", value)
    for result in results:
        counters.count_match("early", result)
    for _ in range(faults):
        fault = Fault(FaultKind.GAME_EXITED, Phase.STEPPING, "gone")
        counters.count_fault("env 0", 0, fault)
    counters.count_reset("restart", 1.0 + len(seats))
    rows = [row(seat, number) for number, seat in enumerate(seats)]
    return counters.snapshot(rows, steps_per_s=50.0, watchdog_cpu_s=0.5)


def test_envs_and_spares_are_numbered_through() -> None:
    first, second = part("env 0", "env 1", "spare 2"), part("env 0", "spare 1")
    merged = merge_stats([("a", first), ("b", second)])
    seats = [(one.seat, one.node, one.instance) for one in merged.instances]
    assert seats == [
        ("env 0", "a", 0),
        ("env 1", "a", 2),
        ("env 2", "b", 1),
        ("spare 3", "a", 4),
        ("spare 4", "b", 3),
    ]


def test_counters_are_sums_and_the_mean_return_is_weighted() -> None:
    first = part("env 0", returns=(1.0, 3.0, 5.0), faults=2)
    second = part("env 0", returns=(11.0,), faults=1)
    merged = merge_stats([("a", first), ("b", second)])
    assert merged.env_steps == 200
    assert merged.steps_per_s == 100.0
    assert merged.episodes == 4
    assert merged.mean_return == pytest.approx(5.0)
    assert (merged.replacements, merged.faults) == ({"game-exited": 3}, 3)
    assert merged.watchdog_cpu_s == 1.0
    resets = merged.reset_s["restart"]
    assert (resets.count, resets.max, resets.p50) == (2, 2.0, 2.0)


def test_matches_are_summed_by_opponent() -> None:
    gone = part("env 0", results=("tie",))
    parts = [("a", part("env 0", results=("win", "loss"))), ("b", part("env 0", results=("win",)))]
    assert merge_stats(parts, past=[gone]).matches == {"early": MatchResults(win=2, loss=1, tie=1)}


def test_lost_pools_count_and_show_no_rows() -> None:
    merged = merge_stats([("a", part("env 0"))], past=[part("env 0", returns=(1.0,), faults=1)])
    assert merged.env_steps == 200
    assert (merged.episodes, merged.faults) == (1, 1)
    assert merged.mean_return is None, "of the pools that play"
    assert len(merged.instances) == 1


def test_a_lost_node_is_a_fault_of_each_of_its_envs() -> None:
    losses = [
        PoolEvent("fault", 1.0, seat, -1, "node-lost", "stepping", "it died")
        for seat in ("env 1", "env 2")
    ]
    merged = merge_stats([("a", part("env 0")), ("b", part("env 0", "env 1"))], losses=losses)
    assert [one.faults for one in merged.instances] == [0, 1, 1]
    assert merged.replacements == {"node-lost": 2}
    assert [event.cause for event in merged.events] == ["node-lost"] * 2


def test_events_move_to_this_clock_and_to_their_seats() -> None:
    first, second = part("env 0"), part("env 0", faults=1)
    merged = merge_stats([("a", first), ("b", second)])
    (event,) = merged.events
    assert event.seat == "env 1"
    assert merged.at_s - event.at_s == pytest.approx(second.at_s - second.events[0].at_s)


def test_plain_data_gives_the_same_again() -> None:
    stats = part("env 0", "env 1", returns=(1.0,), faults=1, results=("win", "undecided"))
    data = json.loads(json.dumps(stats.as_dict()))
    assert stats_from_dict(data) == stats


OLD = {
    "at_s": [0.0, 1.0, 2.0],
    "steps": [0, 10, 20],
    "figures": {"steps/s": [None, 10.0, 10.0], "mean return": [None, None, 4.0]},
}
YOUNG = {
    "at_s": [0.0, 1.0],
    "steps": [0, 30],
    "figures": {"steps/s": [None, 30.0], "mean return": [None, 2.0], "loss": [0.5, 0.25]},
}


def test_one_pool_keeps_its_curves() -> None:
    assert merge_curves([(2.0, OLD)]) == OLD


def test_the_younger_pool_begins_later_on_the_axis_of_the_oldest() -> None:
    merged = merge_curves([(1.0, YOUNG), (2.0, OLD)])
    assert merged["at_s"] == [0.0, 1.0, 2.0]
    assert merged["steps"] == [0, 10, 50]
    assert merged["figures"] == {
        "steps/s": [None, 10.0, 40.0],
        "mean return": [None, None, 3.0],
        "loss": [None, 0.5, 0.25],
    }
