"""What a pool counts of itself."""

from __future__ import annotations

import json

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.report.stats import Stats, summary
from sc2pool.tasks.player import GameFacts


def test_summary_of_durations():
    assert summary([]) == {"count": 0}
    assert summary([2.0]) == {"count": 1, "p50": 2.0, "p95": 2.0, "max": 2.0}
    hundred = [float(number) for number in range(101)]
    assert summary(hundred[::-1]) == {"count": 101, "p50": 50.0, "p95": 95.0, "max": 100.0}


def test_only_the_newest_thousand_are_kept():
    stats = Stats()
    for number in range(1500):
        stats.count_reset("restart", float(number))
    assert stats.as_dict()["reset_s"]["restart"]["count"] == 1000
    assert stats.as_dict()["reset_s"]["restart"]["p50"] >= 999


def test_it_is_plain_data():
    stats = Stats(launches=2, facts=GameFacts(1, 2, "standin-1", 75689))
    stats.count_fault("env 1", 4, Fault(FaultKind.DEADLINE, Phase.STEPPING, "slow"))
    stats.count_fault("env 1", 4, Fault(FaultKind.DEADLINE, Phase.RESETTING, "slow"))
    plain = json.loads(json.dumps(stats.as_dict()))
    assert plain["recycles"] == {"deadline": 2}
    assert (plain["game_version"], plain["base_build"], plain["launches"]) == (
        "standin-1",
        75689,
        2,
    )
    assert Stats().as_dict()["game_version"] is None
