"""A process known by its pid and creation time, so that it is found again, and no other.

A pid alone may belong to another process by now. Linux tells the time of creation since the system
was started, which no step of the wall clock changes; elsewhere it is the wall clock's. Rules: a
process that does not match in both is left alone; one that the system does not let itself be asked
for (no free descriptor) is taken to be alive, and left alone, too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from sc2pool.platform import LINUX
from sc2pool.processes.tree import UNREADABLE, kill_tree

if LINUX:
    _DRIFT_S: Final = 0.0
    _TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

    def _read_created_at_s(pid: int) -> float:
        try:
            status = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            raise psutil.NoSuchProcess(pid) from None
        # proc_pid_stat(5): the 22nd field; the second is a name that may hold anything.
        return int(status.rpartition(b")")[2].split()[19]) / _TICKS_PER_S

else:
    _DRIFT_S: Final = 2.0
    """How much two readings of one creation time may differ: the wall clock may be corrected."""

    def _read_created_at_s(pid: int) -> float:
        return psutil.Process(pid).create_time()


def created_at_s(pid: int) -> float | None:
    """When the process was created, to be compared with nothing else; None if gone or unknown."""
    try:
        return _read_created_at_s(pid)
    except UNREADABLE:
        return None


def is_alive(pid: int, created_s: float) -> bool:
    """True if the process of this pid and creation time still runs; True if that is unknown."""
    try:
        process = _find(pid, created_s)
        return process is not None and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except UNREADABLE:
        return True


def end_orphan(pid: int, created_s: float) -> bool:
    """Kill the tree of the process of this pid and creation time; False if it is gone."""
    with suppress(*UNREADABLE):
        process = _find(pid, created_s)
        if process is not None:
            kill_tree(process)
            return True
    return False


def _find(pid: int, created_s: float) -> psutil.Process | None:
    process = psutil.Process(pid)
    return process if abs(_read_created_at_s(pid) - created_s) <= _DRIFT_S else None
