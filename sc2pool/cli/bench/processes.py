"""CPU time and memory of this process and all that it has started, by their roles.

    trainer   the process that steps the batch: this one
    worker    everything below it that is no game
    game      a process with `-listen` in its arguments, and its children

Rules: a measurement counts the processes that are alive at its end; one that has ended meanwhile
is missing, so no process may end in a measurement. Roles do not depend on a program's name.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

from sc2pool.platform import LINUX
from sc2pool.processes.tree import descendants

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
