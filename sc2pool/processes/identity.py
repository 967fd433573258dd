"""A process known by its pid and creation time, so that it is found again, and no other.

A pid alone may belong to another process by now. Rules: a process that does not match in both is
left alone; one that the system does not let itself be asked for (no free descriptor) is taken to be
alive, and left alone, too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import psutil

from sc2pool.processes.tree import UNREADABLE, kill_tree

_CLOCK_DRIFT_S: Final = 2.0
"""How much two readings of one creation time may differ: the wall clock may be corrected."""


def created_at_s(pid: int) -> float | None:
    """When the process was created, in seconds since the epoch; None if it is gone or unknown."""
    try:
        return psutil.Process(pid).create_time()
    except UNREADABLE:
        return None


def is_alive(pid: int, created_s: float) -> bool:
    """Whether the process of this pid and creation time still runs; True if that is unknown."""
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
    return process if abs(process.create_time() - created_s) <= _CLOCK_DRIFT_S else None
