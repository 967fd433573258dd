"""Creates a pool's operating system resources; a simulation can replace this module's `System`.

`REAL` creates real processes, descriptors, shared memory, files and a thread. The simulation in
`tests/support/simulation` has all these resources in one process, to test millions of rare faults.

A pool creates operating system resources only through a `System`. The exceptions are the files that
a run leaves for people (fault reports, replays) and the port of the metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.workers import Worker
from sc2pool.pool.ipc import pickle_for_worker
from sc2pool.pool.machine import RunDir, available_bytes, require_descriptors
from sc2pool.pool.queues.doorbell import CommonDoorbells, Waiter
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.watchdog import Watchdog
from sc2pool.tasks.player import PlayerSpec


@dataclass(frozen=True)
class System:
    """Creates the operating system resources of a pool."""

    packed: Callable[[PlayerSpec], Any] = pickle_for_worker
    require_descriptors: Callable[[int, int], None] = require_descriptors
    available_bytes: Callable[[], int] = available_bytes
    waiter: Callable[[], Waiter] = Waiter.create
    slots: Callable[[int], Slots] = Slots
    run_dir: Callable[[], RunDir] = RunDir
    worker: Callable[[Path, int, Waiter, CommonDoorbells], Worker] = Worker
    instance: Callable[[int, Any, Slots, int], Instance] = Instance
    watchdog: Callable[..., Watchdog] = Watchdog


REAL = System()
