"""Rounds: what is compared is measured in turn, so that a busy machine is busy for all.

    A B C   C B A   A B C …      one round each; the order alternates

Rules: each round is warmed up by its side, which is left out; the figure of a side is the median of
its rounds; two sides are compared round by round, and the median of these ratios is given beside
the absolute figures, for it stands still when the machine does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

from sc2pool.cli.bench.processes import ROLES, cpu_between, cpu_by_process

WARM_UP_S = 0.1
"""Before a round, where the side does not count it in steps."""


class Side(Protocol):
    """One of those compared; everything it needs is already running."""

    def prepare(self) -> None:
        """Make ready for a round: warmed up, and in the midst of an episode where that matters."""

    def run(self, seconds: float) -> tuple[int, float]:
        """Step for about so long.

        Returns:
            How many env steps were made, by all envs together, and how many seconds they took.
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
        """CPU time of an env step, of these roles together; of all where none is named."""
        return sum(self.cpu_s[role] for role in roles or ROLES) / self.steps * 1e6

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps_per_s": self.steps_per_s}


def measure(side: Side, seconds: float) -> Round:
    """One round."""
    side.prepare()
    before_s = cpu_by_process()
    steps, elapsed_s = side.run(seconds)
    return Round(steps, elapsed_s, cpu_between(before_s, cpu_by_process()))


def alternate(
    sides: Mapping[str, Side],
    rounds: int,
    seconds: float,
    on_round: Callable[[str, Round], None] = lambda _name, _round: None,
) -> dict[str, list[Round]]:
    """Measure all sides in turn.

    Args:
        sides: by name.
        rounds: of each side.
        seconds: about how long a round takes.
        on_round: told of each round when it is over.

    Returns:
        The rounds of each side, in their order.
    """
    measured: dict[str, list[Round]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            measured[name].append(measure(sides[name], seconds))
            on_round(name, measured[name][-1])
    return measured


def steps_per_s(rounds: Sequence[Round]) -> float:
    """The median rate."""
    return median(one.steps_per_s for one in rounds)


def cpu_us_per_step(rounds: Sequence[Round], *roles: str) -> float:
    """The median CPU time of an env step, of these roles together; of all where none is named."""
    return median(one.cpu_us_per_step(*roles) for one in rounds)


def ratio(ours: Sequence[Round], theirs: Sequence[Round]) -> float:
    """How many times as fast, round by round; the median."""
    return median(a.steps_per_s / b.steps_per_s for a, b in zip(ours, theirs, strict=True))


def step_for(step: Callable[[], int], seconds: float, most: int | None = None) -> tuple[int, float]:
    """Call `step` for so long, or until it has made `most` env steps.

    Args:
        step: makes a step and tells how many env steps it was.
        seconds: stop at the first step that ends after so long.
        most: stop when so many env steps are made; None for no such end.
    """
    steps, began_s = 0, time.perf_counter()
    while True:
        steps += step()
        elapsed_s = time.perf_counter() - began_s
        if elapsed_s >= seconds or (most is not None and steps >= most):
            return steps, elapsed_s
