"""Rounds: the figure of a side is the median of several short measurements.

Rule: the side warms up before each round, and the warm-up is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

from sc2pool.cli.bench.machine import CpuUse
from sc2pool.cli.bench.processes import ROLES, cpu_between, cpu_by_process


class Side(Protocol):
    """What is measured; everything it needs is already running."""

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
