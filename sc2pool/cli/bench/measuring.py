"""Measures a side: its rounds, the CPU time and memory of its processes, and the machine.

The figure of a side is the median of several short rounds. CPU time and memory are summed over this
process and all processes below it, by their roles:

    trainer   this process, which steps the batch
    worker    every process below it that does not belong to a game
    game      a process with `-listen` in its arguments, and its children

Rules: the side warms up before each round, and the warm-up is not counted. A measurement counts
only processes that are alive at its end, so no process may end during a measurement. Roles do not
depend on a program's name. Progress goes to stderr, so that stdout holds only the result.
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

from sc2pool.utilities import LINUX, descendants, usable_cores


class Side(Protocol):
    """A subject of a measurement, whose processes are already running."""

    def prepare(self) -> None:
        """Warm up; if episodes matter, stop in the middle of one."""

    def run(self, seconds: float) -> tuple[int, float]:
        """Step for about this long.

        Returns:
            The env steps of all envs, and the seconds that they took.
        """


@dataclass(frozen=True)
class Round:
    """One measurement of one side."""

    steps: int
    """The env steps of all envs."""
    seconds: float
    cpu_s: Mapping[str, float]
    """CPU time used during the round, by role."""
    others_cores: float = 0.0
    """Cores that other programs of this machine kept busy during the round."""
    stolen_cores: float = 0.0
    """Cores whose time a virtual machine's host gave to other machines during the round."""

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.seconds

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, summed over these roles; over all roles by default."""
        return sum(self.cpu_s[role] for role in roles or ROLES) / self.steps * 1e6

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps_per_s": self.steps_per_s}


class Rounds(tuple[Round, ...]):
    """All rounds of one side; each figure is the median of the rounds' figures."""

    @property
    def rates(self) -> list[float]:
        """The steps per second of each round."""
        return [one.steps_per_s for one in self]

    @property
    def steps_per_s(self) -> float:
        return median(self.rates)

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, summed over these roles; over all roles by default."""
        return median(one.cpu_us_per_step(*roles) for one in self)

    @property
    def others_cores(self) -> float:
        """Cores that other programs kept busy during the rounds."""
        return median(one.others_cores for one in self)

    def cpu_us_by_role(self) -> dict[str, float]:
        """CPU time of an env step, by role."""
        return {role: self.cpu_us_per_step(role) for role in ROLES}


def measure(side: Side, seconds: float) -> Round:
    """Warm a side up and measure one round."""
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
        step: makes a step and returns its number of env steps.
        seconds: stop after the first step that ends after this time.

    Returns:
        The number of env steps, and the seconds that they took.
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
"""The argument with which every client starts a game; no other program has it."""


@dataclass(frozen=True)
class Memory:
    """The memory of a process.

    Only Linux reports shared memory by process; elsewhere `pss_bytes` equals `uss_bytes`.
    """

    uss_bytes: int
    """Private pages, which become free when the process ends."""
    pss_bytes: int
    """Private pages, and the process's share of the pages that several processes map."""


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

Two `psutil.Process` are equal if pid and start time are equal, so a reused pid does no harm.
"""


def cpu_by_process() -> Used:
    """The CPU time that each process of the family has used so far."""
    used: Used = {}
    for process, role in family():
        with suppress(psutil.Error, OSError):
            used[process] = role, _cpu_s(process)
    return used


def _cpu_s(process: psutil.Process) -> float:
    if LINUX:
        # Read the clock of the process's CPU time, which has nanoseconds. psutil's figures have
        # steps of 10 ms, too coarse for a hundred processes in a second. The clock's number is
        # computed from the pid as in `clock_getcpuclockid(3)`.
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
    """The current memory of each process, by role, the largest first."""
    found: dict[str, list[Memory]] = {role: [] for role in ROLES}
    for process, role in family():
        with suppress(psutil.Error):
            full = process.memory_full_info()
            found[role].append(Memory(full.uss, getattr(full, "pss", full.uss)))
    for memories in found.values():
        memories.sort(key=lambda memory: -memory.uss_bytes)
    return found


PACKAGES = ("sc2pool", "numpy", "gymnasium", "stable-baselines3", "torch", "burnysc2", "picows")
"""Packages whose versions affect a measurement."""


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, load and versions, for JSON."""
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
    """The processor's name, or its architecture if the system does not tell the name."""
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
        stolen_s: in a virtual machine, given to other machines by the host.
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
        head: a title per column. An element with ` | ` holds the titles of several columns.
        rows: a cell per column.
        align: a letter per column, `l` (the default) or `r`.
    """
    titles = " | ".join(head).split(" | ")
    rules = ["--:" if side == "r" else "---" for side in align.ljust(len(titles), "l")]
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, rules, *rows))
