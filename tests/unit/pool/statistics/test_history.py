"""The course of a pool over time, in bounded memory, and how fast its counters grow."""

from __future__ import annotations

import json
import math

import pytest

from sc2pool.pool.statistics.history import NAMES_KEPT, POINTS, History, Rates


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
    """A note that came late, as after Ctrl-Z, still has one before it to be compared with."""
    rates = Rates(window_s)
    rates.note(0.0, {"steps": 0})
    rates.note(1.0, {"steps": 10})
    rates.note(3600.0, {"steps": 20})
    assert rates.per_s("steps") == pytest.approx(10 / 3599)
