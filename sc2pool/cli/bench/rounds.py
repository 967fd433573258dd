"""Rounds: what is compared is measured in turn, so that a busy machine is busy for all.

    A B C   C B A   A B C …      one round each; the order alternates

Rules: each side warms up before each of its rounds, and the warm-up is not counted; the figure of a
side is the median of its rounds; two sides are compared round by round, and the median of these
ratios is given beside the absolute figures, because it holds when the machine's speed changes; how
sure such a median is can be told from the rounds themselves, and more are made where it is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from statistics import median
from typing import Any, Protocol

from sc2pool.cli.bench.machine import CpuUse
from sc2pool.cli.bench.processes import ROLES, cpu_between, cpu_by_process

WARM_UP_S = 0.1
"""Before a round, if the side does not count its warm-up in steps."""
CERTAINTY = 0.9
"""That the true median lies in its interval."""
NARROW = 0.1
"""The width of a narrow interval, as a share of its median."""


class Side(Protocol):
    """One of those compared; everything it needs is already running."""

    def prepare(self) -> None:
        """Warm up; if episodes matter, be in the middle of one."""

    def run(self, seconds: float) -> tuple[int, float]:
        """Step for about this long.

        Returns:
            Env steps of all envs together, and how many seconds they took.
        """


@dataclass(frozen=True)
class Round:
    """One measurement of one side."""

    steps: int
    """Env steps of all envs together."""
    seconds: float
    cpu_s: Mapping[str, float]
    """CPU time used meanwhile, by role."""
    others_cores: float = 0.0
    """How many cores' time other programs of this machine used meanwhile."""
    stolen_cores: float = 0.0
    """How many cores' time a virtual machine's host gave to others meanwhile."""

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.seconds

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, of these roles together; of all roles by default."""
        return sum(self.cpu_s[role] for role in roles or ROLES) / self.steps * 1e6

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps_per_s": self.steps_per_s}


class Rounds(tuple[Round, ...]):
    """All rounds of one side. Each figure is the median of the rounds' figures."""

    @property
    def rates(self) -> list[float]:
        """Steps per second, of each round."""
        return [one.steps_per_s for one in self]

    @property
    def steps_per_s(self) -> float:
        return median(self.rates)

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, of these roles together; of all roles by default."""
        return median(one.cpu_us_per_step(*roles) for one in self)

    @property
    def others_cores(self) -> float:
        """How many cores' time other programs used meanwhile."""
        return median(one.others_cores for one in self)

    def cpu_us_by_role(self) -> dict[str, float]:
        """CPU time of an env step, of each role."""
        return {role: self.cpu_us_per_step(role) for role in ROLES}

    def ratio(
        self, other: Rounds, figure: Callable[[Round], float] = lambda one: one.steps_per_s
    ) -> float:
        """How many times the other's figure, round by round."""
        return median(figure(ours) / figure(its) for ours, its in zip(self, other, strict=True))

    def ratio_interval(self, other: Rounds) -> tuple[float, float]:
        """Where the ratio of the rates lies; see `median_interval`."""
        return median_interval(
            [ours / its for ours, its in zip(self.rates, other.rates, strict=True)]
        )


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of values that the true median lies between, with 90 % certainty.

    It counts values on both sides of the median, which is right for any distribution (the sign
    test). Fewer than five values cannot be that certain; then it is the lowest and the highest.
    """
    n = len(values)
    ordered = sorted(values)
    lowest, outside = 0, 2 / 2**n  # the chance that all values are on one side of the median
    while 2 * (lowest + 1) < n:
        outside += 2 * comb(n, lowest + 1) / 2**n
        if outside > 1 - CERTAINTY:
            break
        lowest += 1
    return ordered[lowest], ordered[n - 1 - lowest]


def alternate(
    sides: Mapping[str, Side],
    rounds: int,
    seconds: float,
    on_round: Callable[[str, Round], None] = lambda _name, _round: None,
    most_rounds: int = 0,
) -> dict[str, Rounds]:
    """Measure all sides in turn.

    Args:
        sides: by name.
        rounds: of each side, at least.
        seconds: about how long a round takes.
        on_round: called after each round.
        most_rounds: of each side, while the ratios to the first side are not certain to a tenth.

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
    """True if the ratios of all others to the first have narrow intervals."""
    for rounds in measured[1:]:
        low, high = rounds.ratio_interval(measured[0])
        if high - low > NARROW * rounds.ratio(measured[0]):
            return False
    return True


def measure(side: Side, seconds: float) -> Round:
    """One round of a side, warmed up."""
    side.prepare()
    before, machine_before, began_s = cpu_by_process(), CpuUse.now(), time.perf_counter()
    steps, elapsed_s = side.run(seconds)
    cpu_s = cpu_between(before, cpu_by_process())
    machine, took_s = CpuUse.now(), time.perf_counter() - began_s
    others_s = machine.busy_s - machine_before.busy_s - sum(cpu_s.values())
    stolen_s = machine.stolen_s - machine_before.stolen_s
    return Round(steps, elapsed_s, cpu_s, max(0.0, others_s) / took_s, stolen_s / took_s)


def step_for(step: Callable[[], int], seconds: float) -> tuple[int, float]:
    """Call `step` until the time is over.

    Args:
        step: makes a step; returns how many env steps it was.
        seconds: end with the first step that ends after this.

    Returns:
        Env steps made, and how many seconds they took.
    """
    steps, began_s = 0, time.perf_counter()
    while True:
        steps += step()
        elapsed_s = time.perf_counter() - began_s
        if elapsed_s >= seconds:
            return steps, elapsed_s
