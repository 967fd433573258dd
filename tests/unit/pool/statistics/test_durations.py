"""Percentiles of durations."""

from __future__ import annotations

import pytest

from sc2pool.pool.statistics.durations import DurationCounter, Durations, figures
from tests.unit.conftest import printed_by


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
    """Where no descriptor is free, none can be imported."""
    printed_by("""
import sys
from sc2pool.pool.statistics.durations import Durations
before = set(sys.modules)
Durations.of([1.0, 2.0])
assert set(sys.modules) == before, set(sys.modules) - before
""")
