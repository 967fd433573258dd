"""Rounds in turn, and how certain the ratios of their figures are."""

from __future__ import annotations

import numpy as np
import pytest
from bench.comparison import CERTAINTY, alternate, median_interval, ratio, ratio_interval

from sc2pool.cli.bench.measuring import Round, Rounds


class Counting:
    """A side that notes when it is called."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def prepare(self):
        self.calls.append(("prepare", self.name))

    def run(self, seconds):
        self.calls.append(("run", self.name))
        return 100, seconds


def test_the_order_alternates_and_every_round_is_prepared():
    calls = []
    sides = {name: Counting(name, calls) for name in "ABC"}
    measured = alternate(sides, 2, 0.5)
    assert [name for call, name in calls if call == "run"] == list("ABCCBA")
    assert [call for call, _ in calls] == ["prepare", "run"] * 6
    assert {name: len(rounds) for name, rounds in measured.items()} == dict.fromkeys("ABC", 2)
    assert measured["A"][0].steps_per_s == 200


def test_a_ratio_is_taken_round_by_round():
    def rounds(*rates):
        return Rounds(Round(rate, 1.0, {}) for rate in rates)

    # Round by round it is always twice as fast, whatever the machine does meanwhile.
    assert ratio(rounds(100, 20, 60), rounds(50, 10, 30)) == 2.0
    with pytest.raises(ValueError, match="zip"):
        ratio(rounds(1, 2), rounds(1))


@pytest.mark.parametrize(
    ("values", "interval"),
    [([7.0], (7, 7)), ([3, 1, 2], (1, 3)), (range(1, 6), (1, 5)), (range(1, 9), (2, 7))],
)
def test_interval_of_a_median_leaves_out_the_extremes(values, interval):
    assert median_interval(values) == interval


def test_a_medians_interval_is_as_certain_as_it_says():
    rng = np.random.default_rng(0)
    for n in (5, 9, 20):
        intervals = [median_interval(rng.exponential(size=n)) for _ in range(2000)]
        inside = np.mean([low <= np.log(2) <= high for low, high in intervals])
        assert CERTAINTY - 0.02 < inside < CERTAINTY + 0.08


class Rates:
    """A side with a rate for each round."""

    def __init__(self, *rates):
        self._rates = iter(rates)

    def prepare(self):
        pass

    def run(self, _):
        return next(self._rates), 1.0


def test_rounds_are_repeated_until_the_ratio_is_certain():
    steady, noisy = Rates(*[100] * 20), Rates(*[100, 200, 150, 110, 190, *[150] * 15])
    measured = alternate({"a": steady, "b": noisy}, 5, 1.0, most_rounds=20)
    low, high = ratio_interval(measured["b"], measured["a"])
    assert (low, high) == (1.5, 1.5)
    assert 5 < len(measured["a"]) == len(measured["b"]) < 20
    never = {"a": Rates(*[100] * 7), "b": Rates(*[1, 100, 2, 200, 3, 300, 4])}
    assert len(alternate(never, 2, 1.0, most_rounds=7)["a"]) == 7
