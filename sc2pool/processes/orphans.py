"""Processes noted while they lived, so that what a killed trainer left behind can be ended.

A pid alone may belong to someone else by now; a pid with the time of its creation does not. Rule:
what does not match in both is left alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import psutil

_CLOCK_DRIFT_S: Final = 2.0
"""The system tells creation times on its wall clock, which may be corrected a little meanwhile."""


def created_at_s(pid: int) -> float | None:
    """When the process was created, as the system tells it; None if it is gone."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def is_alive(pid: int, created_s: float) -> bool:
    """Whether the process that was created then still is."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        same = abs(process.create_time() - created_s) <= _CLOCK_DRIFT_S
        return same and process.status() != psutil.STATUS_ZOMBIE
    return False


def end_orphan(pid: int, created_s: float) -> bool:
    """SIGKILL to the process that was created then, and to its children; False if it is gone."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if abs(process.create_time() - created_s) > _CLOCK_DRIFT_S:
            return False
        # psutil looks once more, right before the signal, that it is still the same process.
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                each.kill()
        return True
    return False
