"""Finds the processes of an instance, so that a test can harm them."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

from sc2pool.pool.statistics import InstanceStats


def pid_of(instance: InstanceStats, target: str, games: int = 1) -> int | None:
    """The pid of an instance's worker or game, also during its launch; None if it has no process.

    Args:
        instance: The instance whose process is sought.
        target: "worker", "game" or, for the second game of a match, "guest".
        games: The number of games of the instance.
    """
    with suppress(psutil.Error):
        worker = psutil.Process(instance.worker_pid)
        ours = any(parent.pid == os.getpid() for parent in worker.parents())
        if not ours or worker.status() == psutil.STATUS_ZOMBIE:
            return None
        if target == "worker":
            return worker.pid
        pids = [instance.pid, *(game["pid"] for game in instance.other_games)]
        if instance.pid is None:
            pids = [child.pid for child in worker.children()]
        return pids[target == "guest"] if len(pids) == games else None
    return None
