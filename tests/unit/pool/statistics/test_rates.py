"""How fast counters grow."""

from __future__ import annotations

import pytest

from sc2pool.pool.statistics.rates import Rates

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
    """A note that came late, as after Ctrl-Z, still has one before it to be compared with."""
    rates = Rates(window_s)
    rates.note(0.0, {"steps": 0})
    rates.note(1.0, {"steps": 10})
    rates.note(3600.0, {"steps": 20})
    assert rates.per_s("steps") == pytest.approx(10 / 3599)
