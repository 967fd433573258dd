"""Rounds: what is compared is measured in turn, so that a busy machine is busy for all.

    A B C   C B A   A B C …      one round each; the order alternates

Rules: each side warms up before each of its rounds, and the warm-up is not counted; the figure of a
side is the median of its rounds; two sides are compared round by round, and the median of these
ratios is given beside the absolute figures, because it holds when the machine's speed changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

from sc2pool.cli.bench.processes import ROLES, cpu_between, cpu_by_process

WARM_UP_S = 0.1
"""Before a round, if the side does not count its warm-up in steps."""


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

    def cpu_us_by_role(self) -> dict[str, float]:
        """CPU time of an env step, of each role."""
        return {role: self.cpu_us_per_step(role) for role in ROLES}

    def ratio(
        self, other: Rounds, figure: Callable[[Round], float] = lambda one: one.steps_per_s
    ) -> float:
        """How many times the other's figure, round by round."""
        return median(figure(ours) / figure(its) for ours, its in zip(self, other, strict=True))


def alternate(
    sides: Mapping[str, Side],
    rounds: int,
    seconds: float,
    on_round: Callable[[str, Round], None] = lambda _name, _round: None,
) -> dict[str, Rounds]:
    """Measure all sides in turn.

    Args:
        sides: by name.
        rounds: of each side.
        seconds: about how long a round takes.
        on_round: called after each round.

    Returns:
        The rounds of each side, in their order.
    """
    measured: dict[str, list[Round]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            sides[name].prepare()
            before = cpu_by_process()
            steps, elapsed_s = sides[name].run(seconds)
            one = Round(steps, elapsed_s, cpu_between(before, cpu_by_process()))
            measured[name].append(one)
            on_round(name, one)
    return {name: Rounds(found) for name, found in measured.items()}


def step_for(step: Callable[[], int], seconds: float, most: int | None = None) -> tuple[int, float]:
    """Call `step` until the time is over, or until it has made `most` env steps.

    Args:
        step: makes a step; returns how many env steps it was.
        seconds: end with the first step that ends after this.
        most: end after this number of env steps; None for no such limit.

    Returns:
        Env steps made, and how many seconds they took.
    """
    steps, began_s = 0, time.perf_counter()
    while True:
        steps += step()
        elapsed_s = time.perf_counter() - began_s
        if elapsed_s >= seconds or (most is not None and steps >= most):
            return steps, elapsed_s
