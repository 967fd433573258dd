"""A serial pool's system, without worker processes; see `sc2pool.pool.instances.system`.

The pool is the same, so episodes, seeds and observations are. What is missing is supervision: no
worker can be killed, nothing watches memory and hung code, and a deadline passes as it will, since
the user may stand at a breakpoint.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.pool.instances.system import System
from sc2pool.pool.machine.watchdog import Sample, Verdict, Watchdog
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.serial.waiter import SerialWaiter
from sc2pool.pool.serial.worker import SerialWorker

_NO_LIMIT_S = 1e9


def serial_system() -> System:
    """The system of one serial pool."""
    loop = asyncio.SelectorEventLoop()
    return System(
        packed=lambda spec: spec,
        waiter=lambda: SerialWaiter(loop),
        worker=partial(SerialWorker, loop),
        watchdog=NoWatchdog,
    )


def without_deadlines(config: PoolConfig) -> PoolConfig:
    """The same configuration, with all the time in the world for the user's code."""
    limits = replace(
        config.limits, worker_start_s=_NO_LIMIT_S, worker_grace_s=_NO_LIMIT_S, call_s=_NO_LIMIT_S
    )
    return replace(config, limits=limits)


class NoWatchdog(Watchdog):
    """Watches nothing."""

    def __init__(self, *_: Any) -> None:
        self.cpu_s = 0.0
        self.doorbell = Doorbell.create()
        self._open = True

    def verdicts(self) -> list[Verdict]:
        return []

    def samples(self) -> dict[int, Sample]:
        return {}

    @property
    def is_this_thread(self) -> bool:
        return False

    def close(self) -> None:
        if self._open:
            self._open = False
            self.doorbell.close()
