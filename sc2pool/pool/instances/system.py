"""The operating system as a pool uses it; a simulation has a system of its own.

    REAL       processes, descriptors, shared memory, files, a thread
    simulated  `tests/support/simulation`: all of these in one process, for millions of rare faults

Rule: a pool makes nothing of the operating system's but through this. Apart from it are what a run
leaves for people (fault reports, replays) and the metrics' port.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.workers import Worker
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.machine.resources import available_bytes, require_descriptors
from sc2pool.pool.machine.run_dir import RunDir
from sc2pool.pool.machine.watchdog import Watchdog
from sc2pool.pool.queues.doorbell import CommonDoorbells
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.queues.waiter import Waiter
from sc2pool.tasks.player import PlayerSpec


@dataclass(frozen=True)
class System:
    """Makes what a pool has of the operating system.

    Attributes:
        packed: makes of an env's `PlayerSpec` what a worker takes.
        require_descriptors: raises if this process cannot hold as many instances as the first
            number says, with as many in each worker as the second says.
        available_bytes: memory that is free for new processes.
        waiter: makes what the trainer waits with.
        slots: makes the shared memory for that many instances.
        run_dir: makes the run's folder.
        worker: starts a worker.
        instance: makes an instance.
        watchdog: makes the watching thread.
    """

    packed: Callable[[PlayerSpec], Any] = for_worker
    require_descriptors: Callable[[int, int], None] = require_descriptors
    available_bytes: Callable[[], int] = available_bytes
    waiter: Callable[[], Waiter] = Waiter.create
    slots: Callable[[int], Slots] = Slots
    run_dir: Callable[[], RunDir] = RunDir
    worker: Callable[[Path, int, Waiter, CommonDoorbells], Worker] = Worker
    instance: Callable[[int, Any, Slots, int], Instance] = Instance
    watchdog: Callable[..., Watchdog] = Watchdog


REAL = System()
