"""Measures a `Side`, such as a pool; finds the best number of games and the pool's bottleneck.

Each figure of a `Side` is the median of several short rounds. CPU time and memory are summed by
role over this process and all its descendants:

    Trainer: this process, which steps all envs of the pool.
    Worker: every descendant that does not belong to a game.
    Game: a process with `-listen` in its arguments, or a child of such a process.

Rules: a `Side` warms up before each round, and the warm-up is not counted. A measurement counts
only processes that are alive at its end, so no process may end during a measurement. A process's
role does not depend on its program's name. Progress is printed to stderr, so that only the result
is on stdout. The advice is a pure function from figures to sentences, and each sentence names its
figures. This module is quick to import, so that bad arguments are reported without a delay.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import psutil

from sc2pool.utilities import LINUX, descendants, usable_cores


class Side(Protocol):
    """Anything that can be measured, such as a pool whose processes are already running."""

    def prepare(self) -> None:
        """Warm up; if ends of episodes affect the figures, stop the warm-up far from any end."""

    def run(self, seconds: float) -> tuple[int, float]:
        """Step for about `seconds`; returns the env steps of all envs, and the seconds taken."""


@dataclass(frozen=True)
class Round:
    """One measurement of one `Side`, for example of a pool."""

    steps: int
    """The env steps of all envs."""
    seconds: float
    cpu_s: Mapping[str, float]
    """CPU time used during the round, by role."""
    others_cores: float = 0.0
    """How many cores other programs of this machine kept busy during the round."""
    stolen_cores: float = 0.0
    """In a virtual machine, how many cores the host gave to other machines during the round."""

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.seconds

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, summed over these `roles`; if none is given, over all roles."""
        return sum(self.cpu_s[role] for role in roles or ROLES) / self.steps * 1e6

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps_per_s": self.steps_per_s}


class Rounds(tuple[Round, ...]):
    """All rounds of one `Side`; each figure is the median of the rounds' figures."""

    @property
    def rates(self) -> list[float]:
        return [one.steps_per_s for one in self]

    @property
    def steps_per_s(self) -> float:
        return median(self.rates)

    def cpu_us_per_step(self, *roles: str) -> float:
        """CPU time of an env step, summed over these `roles`; if none is given, over all roles."""
        return median(one.cpu_us_per_step(*roles) for one in self)

    @property
    def others_cores(self) -> float:
        """How many cores other programs kept busy during the rounds."""
        return median(one.others_cores for one in self)

    def cpu_us_by_role(self) -> dict[str, float]:
        return {role: self.cpu_us_per_step(role) for role in ROLES}


def measure(side: Side, seconds: float) -> Round:
    """Warm up a `Side`, such as a pool, and measure one round."""
    side.prepare()
    before, machine_before, began_s = cpu_by_process(), CpuUse.now(), time.perf_counter()
    steps, elapsed_s = side.run(seconds)
    cpu_s = cpu_between(before, cpu_by_process())
    machine, took_s = CpuUse.now(), time.perf_counter() - began_s
    others_s = machine.busy_s - machine_before.busy_s - sum(cpu_s.values())
    stolen_s = machine.stolen_s - machine_before.stolen_s
    return Round(steps, elapsed_s, cpu_s, max(0.0, others_s) / took_s, stolen_s / took_s)


def step_for(step: Callable[[], int], seconds: float) -> tuple[int, float]:
    """Call `step` for about `seconds`; returns the sum of the env steps, and the seconds taken."""
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
"""A command-line argument that every game gets, and that no other program has."""


@dataclass(frozen=True)
class Memory:
    """A process's memory; the sizes differ only on Linux, which reports shared pages."""

    uss_bytes: int
    """The size of private pages, which become free when the process ends."""
    pss_bytes: int
    """The size of private pages, plus the process's share of pages that several processes map."""


def family() -> list[tuple[psutil.Process, str]]:
    """This process and all its descendants, each with its role."""
    me = psutil.Process()
    below = descendants(me)
    games = {process.pid for process in below if _is_game(process)}
    for process in below:  # parents come before their children
        with suppress(psutil.Error):
            if process.ppid() in games:
                games.add(process.pid)
    return [(me, TRAINER), *((p, GAME if p.pid in games else WORKER) for p in below)]


def _is_game(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return LISTEN in process.cmdline()
    return False


Used = dict[psutil.Process, tuple[str, float]]
"""Each process's role and CPU seconds so far; a process with a reused pid counts as a new one."""


def cpu_by_process() -> Used:
    """The CPU time so far of this process and each of its descendants."""
    used: Used = {}
    for process, role in family():
        with suppress(psutil.Error, OSError):
            used[process] = role, _cpu_s(process)
    return used


def _cpu_s(process: psutil.Process) -> float:
    if LINUX:
        # The clock of the process's CPU time counts nanoseconds, but psutil counts steps of 10 ms.
        # Steps of 10 ms are too coarse if a hundred processes share a second.
        # The clock's id is computed from the pid in the same way as by `clock_getcpuclockid(3)`.
        return time.clock_gettime(~process.pid << 3 | 2)
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_between(before: Used, after: Used) -> dict[str, float]:
    """The CPU seconds that each role used between two calls of `cpu_by_process`."""
    used_s = dict.fromkeys(ROLES, 0.0)
    for process, (role, cpu_s) in after.items():
        _, before_s = before.get(process, (role, 0.0))
        used_s[role] += cpu_s - before_s
    return used_s


def memory_by_role() -> dict[str, list[Memory]]:
    """For each role, the current memory of its processes, the largest first."""
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
    """The machine's processor, cores, memory and load, and the packages' versions, for JSON."""
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
    """The processor's name; its architecture if the system does not report the name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version_of(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


@dataclass(frozen=True)
class CpuUse:
    """CPU seconds of all cores since boot.

    `busy_s` was used by programs of this machine. If this is a virtual machine, the host gave
    `stolen_s` to other machines.
    """

    busy_s: float
    stolen_s: float

    @classmethod
    def now(cls) -> CpuUse:
        times = psutil.cpu_times()
        stolen_s = float(getattr(times, "steal", 0.0))
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        # Subtract the CPU time of virtual machines, because the user time already includes it.
        guests_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return cls(float(sum(times) - idle_s - stolen_s - guests_s), stolen_s)


_BEGAN_S = time.monotonic()


def tell(line: str) -> None:
    """Print a line of progress, with the seconds since the program began."""
    print(f"[{time.monotonic() - _BEGAN_S:6.1f} s] {line}", file=sys.stderr, flush=True)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A Markdown table; ` | ` in `head` separates titles, and `align` has `l` or `r` per column."""
    titles = " | ".join(head).split(" | ")
    rules = ["--:" if side == "r" else "---" for side in align.ljust(len(titles), "l")]
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, rules, *rows))


# ---- the results of `sc2pool bench`, and advice --------------------------------------------------


@dataclass(frozen=True)
class Measured:
    n: int
    rounds: Rounds
    started_s: float
    """Seconds from the constructor to the first observation of all games."""
    game_bytes: int
    """The median memory of a game, including its share of pages that several games map."""
    worker_bytes: int

    @property
    def steps_per_s(self) -> float:
        return self.rounds.steps_per_s

    @property
    def cores_busy(self) -> float:
        """How many cores the processes of the pool keep busy in total."""
        return self.rounds.cpu_us_per_step() * self.steps_per_s / 1e6

    @property
    def env_bytes(self) -> int:
        return self.game_bytes + self.worker_bytes

    def times(self, first: Measured) -> float:
        """The rate of this pool, divided by the rate of one game of the pool `first`."""
        return self.steps_per_s / first.steps_per_s * first.n

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "steps_per_s": self.steps_per_s,
            "others_cores": self.rounds.others_cores,
            "cpu_us_per_step": self.rounds.cpu_us_by_role(),
            "cores_busy": self.cores_busy,
            "rounds": [one.as_dict() for one in self.rounds],
        }


@dataclass(frozen=True)
class Resets:
    """The duration of resets in a pool of `n` envs and `spares` spare games."""

    n: int
    spares: int
    reset_ms: Mapping[str, float]
    """The median time of each kind of reset; kinds that did not happen are left out."""
    cost_percent: Mapping[str, float]
    """How many percent longer a batch with a reset is than the median batch without one."""


GOOD_ENOUGH = 0.95
"""A smaller pool is preferred if it reaches this share of the best rate: it needs less memory."""
CORES_FULL = 0.85
"""The cores are the bottleneck if this share of their time is used; the system needs the rest."""
IN_STEP = 0.85
"""Games hardly wait for each other if each reaches at least this share of a single game's rate."""
DEAR_RESET_PERCENT = 10.0
"""Spare games are worth their memory if a reset lengthens a batch by at least this percentage."""
MUCH_ELSE_CORES = 0.25
"""The advice mentions other programs if these use at least this many cores."""


class Limit(StrEnum):
    """The bottleneck of a pool."""

    MEMORY = "memory"
    CORES = "cores"
    GAME = "the game"
    BATCH = "the slowest of each batch"


def best(measured: Sequence[Measured]) -> Measured:
    """The smallest pool that is about as fast as the fastest pool."""
    fastest = max(one.steps_per_s for one in measured)
    return next(one for one in measured if one.steps_per_s >= GOOD_ENOUGH * fastest)


def limit_of(chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int) -> Limit:
    """The bottleneck of the chosen pool.

    `measured` begins with the smallest pool; `free_bytes` is the memory free before any launch.
    """
    if chosen.cores_busy + chosen.rounds.others_cores >= CORES_FULL * cores:
        return Limit.CORES
    if chosen is measured[-1] and 2 * chosen.n * chosen.env_bytes > free_bytes:
        return Limit.MEMORY
    first = measured[0]
    if chosen.steps_per_s / chosen.n >= IN_STEP * first.steps_per_s / first.n:
        return Limit.GAME
    return Limit.BATCH


def advice(
    measured: Sequence[Measured], resets: Sequence[Resets], cores: int, free_bytes: int
) -> list[str]:
    """Sentences of advice for the user; `limit_of` explains the arguments."""
    chosen = best(measured)
    limit = limit_of(chosen, measured, cores, free_bytes)
    said = [f"n={chosen.n} looks best: {chosen.steps_per_s:,.0f} env steps a second."]
    said += [_why(limit, chosen, measured, cores, free_bytes)]
    others_cores = chosen.rounds.others_cores
    if others_cores >= MUCH_ELSE_CORES:
        said += [
            f"Other programs took {others_cores:.1f} cores during the measurement: repeat it "
            "without them, because the result may be different."
        ]
    return said + [line for line in [_about_spares(resets, limit)] if line]


def _why(
    limit: Limit, chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int
) -> str:
    if limit is Limit.CORES:
        cpu_us = chosen.rounds.cpu_us_by_role()
        game, worker = (cpu_us[role] / sum(cpu_us.values()) for role in (GAME, WORKER))
        # The rounded shares must add up to 100 %.
        percents = round(100 * game), round(100 * worker)
        others_cores, taken = chosen.rounds.others_cores, ""
        if others_cores >= MUCH_ELSE_CORES:
            taken = f", other programs keep {others_cores:.1f} busy"
        return (
            f"The cores limit the rate: {chosen.cores_busy:.1f} of {cores} work for it{taken}. In "
            f"a step's CPU time, the game takes {percents[0]}%, the worker {percents[1]}% and the "
            f"trainer {100 - sum(percents)}%. {_relief(game, worker)}"
        )
    if limit is Limit.MEMORY:
        fit = max(1, free_bytes // max(1, chosen.env_bytes))
        return (
            f"Memory limits the rate: a game and its worker take {chosen.env_bytes / 1e6:,.0f} MB, "
            f"and {free_bytes / 1e6:,.0f} MB were free, which is enough for about {fit} games, "
            "spares included."
        )
    if limit is Limit.GAME:
        try_more = (
            f"Twice as many may be faster still: try --n {2 * chosen.n}."
            if chosen is measured[-1]
            else "More of them were hardly faster."
        )
        return (
            f"The game itself limits the rate: {chosen.n} games give {chosen.steps_per_s:,.0f} "
            f"steps a second, {chosen.times(measured[0]):.1f} times the rate of "
            f"one, and only {chosen.cores_busy:.1f} of {cores} cores are busy. {try_more}"
        )
    return (
        f"Each batch waits for its slowest game: {chosen.n} games give only "
        f"{chosen.times(measured[0]):.1f} times the rate of one, "
        f"though only {chosen.cores_busy:.1f} of {cores} cores are busy. It helps to step the "
        "games that are ready first (`env.pool.send` and `recv(min_ready=…)`), or to use a "
        "larger step_mul."
    )


def _relief(game_share: float, worker_share: float) -> str:
    if game_share >= 0.5:
        return "Only fewer env steps help: a larger step_mul, if the task permits it."
    if worker_share >= 0.5:
        return "Most of it is the task's own code: measure the time of `observe` and `act`."
    return "A larger step_mul plays the same game time in fewer steps."


def _about_spares(resets: Sequence[Resets], limit: Limit) -> str:
    bare = next((one.cost_percent for one in resets if not one.spares), {})
    spared = next((one for one in resets if one.spares), None)
    kind = next(iter(bare), None)
    if spared is None or kind is None or kind not in spared.cost_percent:
        return ""
    before, after = bare[kind], spared.cost_percent[kind]
    measured = (
        f"A batch in which an episode ends takes {before:+.0f} % time without spares and "
        f"{after:+.0f} % with {spared.spares}"
    )
    if before < DEAR_RESET_PERCENT:
        return f"{measured}: spares are worth their memory here only if games fail."
    if after >= before:
        return f"{measured}: they do not help here, because the cores are full."
    if limit is Limit.MEMORY:
        return f"{measured}: with short episodes, a spare is worth more than another game."
    return f"{measured}: use them."
