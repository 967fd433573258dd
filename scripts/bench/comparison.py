"""Compares programs (sides), which play rounds in turn, so that a busy machine slows all sides.

Each side plays one round in turn, and the order alternates (A B C, C B A and so on). Two
sides are compared by the ratio of their rates in each round. The median of these ratios is given
beside the absolute figures, because the ratios stay valid when the machine's speed changes. Rounds
are repeated until the confidence interval of the median is narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from statistics import median

from sc2pool.cli.bench.measuring import Round, Rounds, Side, measure

CERTAINTY = 0.9
"""The probability that the true median lies in the computed interval."""
NARROW = 0.1
"""The largest width of a narrow interval, as a share of the median."""


def alternate(
    sides: Mapping[str, Side],
    rounds: int,
    seconds: float,
    on_round: Callable[[str, Round], None] = lambda _name, _round: None,
    most_rounds: int = 0,
) -> dict[str, Rounds]:
    """Measure all sides in turn.

    Args:
        sides: the sides by their names.
        rounds: the least number of rounds of each side.
        seconds: about how long a round takes.
        on_round: called after each round.
        most_rounds: the limit of rounds; after `rounds` rounds, `is_certain` ends the measurement.

    Returns:
        The rounds of each side, in their order.
    """
    measured: dict[str, Rounds] = {name: Rounds() for name in sides}
    number = 0
    while number < rounds or (number < most_rounds and not is_certain(list(measured.values()))):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            one = measure(sides[name], seconds)
            measured[name] = Rounds((*measured[name], one))
            on_round(name, one)
        number += 1
    return measured


def is_certain(measured: Sequence[Rounds]) -> bool:
    """True if the ratio of each other side to the first side has a narrow interval."""
    for rounds in measured[1:]:
        low, high = ratio_interval(rounds, measured[0])
        if high - low > NARROW * ratio(rounds, measured[0]):
            return False
    return True


def ratio(
    ours: Rounds, theirs: Rounds, figure: Callable[[Round], float] = lambda one: one.steps_per_s
) -> float:
    """The rate of `ours` divided by the rate of `theirs`, as the median of the rounds' ratios."""
    return median(_ratios(ours, theirs, figure))


def ratio_interval(ours: Rounds, theirs: Rounds) -> tuple[float, float]:
    """The interval of the ratio of the rates; see `median_interval`."""
    return median_interval(_ratios(ours, theirs, lambda one: one.steps_per_s))


def _ratios(ours: Rounds, theirs: Rounds, figure: Callable[[Round], float]) -> list[float]:
    return [figure(our) / figure(their) for our, their in zip(ours, theirs, strict=True)]


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of values between which the true median lies, with 90 % certainty.

    The interval comes from the sign test, which is valid for any distribution. With fewer than five
    values no interval has this certainty, and the lowest and the highest value are returned.
    """
    n = len(values)
    ordered = sorted(values)
    lowest, outside = 0, 2 / 2**n  # the probability that all values are on one side of the median
    while 2 * (lowest + 1) < n:
        outside += 2 * comb(n, lowest + 1) / 2**n
        if outside > 1 - CERTAINTY:
            break
        lowest += 1
    return ordered[lowest], ordered[n - 1 - lowest]
