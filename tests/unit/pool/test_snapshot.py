"""The statistics and curves of several pools, merged into those of one."""

from __future__ import annotations

import json

import pytest

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.measures import MatchResults
from sc2pool.pool.report.snapshot import merge_curves, merge_stats, stats_from_dict
from sc2pool.pool.statistics import Counters, InstanceStats, PoolEvent, PoolStats


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
