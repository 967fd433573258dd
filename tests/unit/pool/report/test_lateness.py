"""What a pool counts of late actions."""

from __future__ import annotations

import json

import pytest

from sc2pool.game.clock import Tick
from sc2pool.pool.report.lateness import Ticks


def test_the_one_long_gap_is_not_hidden():
    ticks = Ticks()
    for _ in range(99):
        ticks.note(0, Tick(0.01, 0, 0))
    ticks.note(0, Tick(2.0, 11, 36))
    told = ticks.as_dict()
    assert told["gap_s"] == {"p50": 0.01, "p99": 0.01, "max": 2.0}
    assert (told["steps"], told["misses"]) == (100, 1)
    assert (told["lost_periods"], told["skipped_loops"]) == (11, 36)


def test_each_env_by_itself_and_all_together():
    ticks = Ticks()
    ticks.note(3, Tick(0.3, 0, 0))
    ticks.note(1, Tick(0.1, 2, 8))
    ticks.note(1, Tick(0.2, 1, 0))
    told = ticks.as_dict()
    assert list(told["envs"]) == ["env 1", "env 3"]
    assert told["envs"]["env 1"] == {
        "steps": 2,
        "gap_s": {"p50": 0.1, "p99": 0.2, "max": 0.2},
        "misses": 2,
        "lost_periods": 3,
        "skipped_loops": 8,
    }
    assert told["envs"]["env 3"]["misses"] == 0
    assert told["gap_s"]["max"] == 0.3
    assert told["steps"] == 3


def test_the_longest_is_kept_for_ever():
    ticks = Ticks()
    ticks.note(0, Tick(5.0, 0, 0))
    for _ in range(2000):
        ticks.note(0, Tick(0.5, 0, 0))
    assert ticks.as_dict()["gap_s"] == {"p50": 0.5, "p99": 0.5, "max": 5.0}


def test_spares():
    ticks = Ticks()
    assert ticks.as_dict()["spares"] == {"held": 0, "loops": 0, "problem": ""}
    for loops in (3, None, 4):
        ticks.note_hold(loops)
    ticks.note_problem("may not be stopped")
    assert ticks.as_dict()["spares"] == {"held": 3, "loops": 7, "problem": "may not be stopped"}


@pytest.mark.parametrize("steps", [0, 1])
def test_it_is_plain_data(steps):
    ticks = Ticks()
    for _ in range(steps):
        ticks.note(0, Tick(0.1, 0, 0))
    told = json.loads(json.dumps(ticks.as_dict()))
    assert told["steps"] == steps
    assert told["gap_s"] == ({"p50": 0.1, "p99": 0.1, "max": 0.1} if steps else {})
