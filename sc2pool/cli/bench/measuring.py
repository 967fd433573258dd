"""Measurements of a side: its rounds, the CPU time and memory of its processes, and the machine.

The figure of a side is the median of several short rounds. CPU time and memory are those of this
process and of all that it has started, by their roles:

    trainer   the process that steps the batch: this one
    worker    everything below it that is no game
    game      a process with `-listen` in its arguments, and its children

Rules: the side warms up before each round, and the warm-up is not counted. A measurement counts the
processes that are alive at its end; one that has ended meanwhile is missing, so no process may end
in a measurement. Roles do not depend on a program's name. Progress goes to stderr, so that stdout
holds the result alone.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import psutil

from sc2pool.platform import LINUX
from sc2pool.processes.table import usable_cores
from sc2pool.processes.tree import descendants


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


TRAINER: Final = "trainer"
WORKER: Final = "worker"
GAME: Final = "game"
ROLES: Final = (TRAINER, WORKER, GAME)

LISTEN: Final = "-listen"
"""The argument that every client starts a game with, and nothing else."""


@dataclass(frozen=True)
class Memory:
    """The memory of a process.

    Linux knows how much of it is shared with others; elsewhere `pss_bytes` equals `uss_bytes`.
    """

    uss_bytes: int
    """Pages of this process alone, which would be free without it."""
    pss_bytes: int
    """Those pages, and its share of the pages that several processes map."""


def family() -> list[tuple[psutil.Process, str]]:
    """This process and all below it, each with its role."""
    me = psutil.Process()
    below = descendants(me)
    games = {process.pid for process in below if _is_game(process)}
    for process in below:  # parents come before their children
        with suppress(psutil.Error):
            if process.ppid() in games:
                games.add(process.pid)
    return [(me, TRAINER), *((p, GAME if p.pid in games else WORKER) for p in below)]


def _is_game(process: psutil.Process) -> bool:
    try:
        return LISTEN in process.cmdline()
    except psutil.Error:
        return False


Used = dict[psutil.Process, tuple[str, float]]
"""The role of each process, and the CPU seconds that it has used so far.

Two `psutil.Process` are equal if pid and start time are, not if the pid was used again.
"""


def cpu_by_process() -> Used:
    """CPU time used so far, of each process of the family."""
    used: Used = {}
    for process, role in family():
        with suppress(psutil.Error, OSError):
            used[process] = role, _cpu_s(process)
    return used


def _cpu_s(process: psutil.Process) -> float:
    if LINUX:
        # The clock of another process's CPU time, in nanoseconds; psutil's figures have steps of
        # 10 ms, which is too coarse for a hundred processes in a second. The clock's number is made
        # from the pid as in `clock_getcpuclockid(3)`.
        return time.clock_gettime(~process.pid << 3 | 2)
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_between(before: Used, after: Used) -> dict[str, float]:
    """CPU seconds by role, between two results of `cpu_by_process`."""
    used_s = dict.fromkeys(ROLES, 0.0)
    for process, (role, cpu_s) in after.items():
        _, before_s = before.get(process, (role, 0.0))
        used_s[role] += cpu_s - before_s
    return used_s


def memory_by_role() -> dict[str, list[Memory]]:
    """The memory of each process now, by role; largest first."""
    found: dict[str, list[Memory]] = {role: [] for role in ROLES}
    for process, role in family():
        with suppress(psutil.Error):
            full = process.memory_full_info()
            found[role].append(Memory(full.uss, getattr(full, "pss", full.uss)))
    for memories in found.values():
        memories.sort(key=lambda memory: -memory.uss_bytes)
    return found


PACKAGES = ("sc2pool", "numpy", "gymnasium", "stable-baselines3", "torch", "burnysc2", "picows")
"""Those that are measured or used to measure."""


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, load and versions, as plain data."""
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := version_of(name))},
    }


def cpu_model() -> str:
    """The processor's name, as far as the system knows it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version_of(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class CpuUse:
    """CPU seconds of all cores since boot.

    Attributes:
        busy_s: used by the programs of this machine.
        stolen_s: a virtual machine's, which its host gave to others.
    """

    busy_s: float
    stolen_s: float

    @classmethod
    def now(cls) -> CpuUse:
        times = psutil.cpu_times()
        stolen_s = float(getattr(times, "steal", 0.0))
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        # The user time includes the guests' time.
        guests_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return cls(float(sum(times) - idle_s - stolen_s - guests_s), stolen_s)


_BEGAN_S = time.monotonic()


def tell(line: str) -> None:
    """Print a line of progress, with the seconds since the program began."""
    print(f"[{time.monotonic() - _BEGAN_S:6.1f} s] {line}", file=sys.stderr, flush=True)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A Markdown table.

    Args:
        head: a title per column; it may hold `|`, if one title spans several columns.
        rows: a cell per column.
        align: a letter per column, `l` or `r`; to the left by default.
    """
    titles = " | ".join(head).split(" | ")
    rules = ["--:" if side == "r" else "---" for side in align.ljust(len(titles), "l")]
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, rules, *rows))
