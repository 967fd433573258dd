"""Play for an hour while games and workers are killed, and prove that nothing was lost.

    .venv/bin/python scripts/soak.py --minutes 60 --n 8 --fault-every 2 --report soak.json

Every transition is checked as it comes (`audit.checker`), every injected fault is accounted for
at the end (`audit.ledger`), and so is what is left on the machine and what the trainer's memory
did. Exit code 1 on anything wrong; a step that never ends is told with a traceback of all threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from audit.belongings import GONE_WITHIN_S, Belongings
from audit.checker import Began, Checker, Received, Sent, Violation
from audit.injector import Injector
from audit.ledger import Ledger
from audit.recording import from_batch, from_reset, from_step, marks_of
from audit.task import NUMBERS, AuditTask

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy

LIMITS = Limits(
    launch_s=20.0, create_join_s=10.0, reset_s=10.0, step_s=4.0, worker_grace_s=3.0
)
"""Small, so that a hung game is told from a slow one within seconds."""
ANY_NUMBER = 1_000_000
HUNG_S = 240.0
"""No step may last longer, whatever faults it meets."""
SETTLE_S = 90.0
"""How long the last faults may take to be noticed."""
SHOWN_EVERY_S = 30.0
LOOK_EVERY_S = 1.0
GROWTH_BYTES = 16_000_000
"""The trainer's memory may grow by this much, however long it runs."""
BUNDLES_KEPT = 50
VIOLATIONS_KEPT = 100


class Soak:
    """A run: steps the pool, and checks and counts what comes of it."""

    def __init__(self, options: argparse.Namespace, bundles: Path) -> None:
        self.options = options
        self.bundles = bundles
        self.ledger = Ledger()
        self.checker = Checker(ahead=options.n + options.spares)
        self.violations: deque[str] = deque(maxlen=VIOLATIONS_KEPT)
        self.violation_count = 0
        self.numbers = itertools.count()
        self.rss_bytes: list[int] = []
        self.recovery_s: list[float] = []
        self.longest_step_s = 0.0
        self.most_bundles = 0
        self.env = SubprocSC2VecEnv(
            n=options.n,
            task=AuditTask,
            game=options.game,
            spares=options.spares,
            seed=options.seed if options.seeded else None,
            config=PoolConfig(
                limits=LIMITS,
                restart=RestartPolicy(per_env=ANY_NUMBER, per_pool_per_env=ANY_NUMBER),
                watchdog_interval_s=0.5,
                bundle_dir=bundles,
            ),
        )
        self.injector = Injector(
            lambda: self.env.stats()["instances"], self.ledger, options.fault_every, options.seed
        )

    def run(self) -> None:
        """Play until the time is over and every fault has been noticed."""
        began_s = self.now_s = time.monotonic()
        end_s = began_s + 60.0 * self.options.minutes
        look_s = show_s = began_s
        batches = self.first_ready() if self.options.first_ready else self.in_sync()
        self.injector.start()
        for records in batches:
            self.take(records)
            if self.now_s >= look_s:
                look_s = self.now_s + LOOK_EVERY_S
                self.look()
                if self.now_s >= show_s:
                    show_s = self.now_s + SHOWN_EVERY_S
                    self.show(self.now_s - began_s)
                if self.now_s >= end_s:
                    self.injector.stop()
                    if not self.ledger.unnoticed() or self.now_s >= end_s + SETTLE_S:
                        break
        self.show(self.now_s - began_s)

    def in_sync(self) -> Iterator[Sequence[Began | Received]]:
        """All envs in every step, through the face that Stable-Baselines3 sees."""
        env = self.env
        with patience():
            yield list(from_reset(env.reset(), env.reset_infos))
        while True:
            actions = self.actions(range(env.num_envs))
            with patience():
                step = env.step(actions)
            yield list(from_step(step, env.reset_infos))

    def first_ready(self) -> Iterator[Sequence[Began | Received]]:
        """Half of the envs at a time, whichever are ready first."""
        env, pool = self.env, self.env.pool
        with patience():
            yield list(from_reset(env.reset(), env.reset_infos))
        envs: Sequence[int] = range(env.num_envs)
        while True:
            pool.send(self.actions(envs), envs)
            with patience():
                batch = pool.receive(min_ready=max(1, env.num_envs // 2))
            envs = batch.envs.tolist()
            yield list(from_batch(batch))

    def actions(self, envs: Sequence[int]) -> np.ndarray:
        """An action for each of these envs, unlike any before."""
        harms = self.injector.harms(envs)
        numbers = [next(self.numbers) % NUMBERS for _ in envs]
        self.blame(v for e, k in zip(envs, numbers, strict=True) for v in self.checker.check(Sent(e, k)))
        return np.array([numbers, harms], np.int64).T

    def take(self, records: Sequence[Began | Received]) -> None:
        """Check what came back."""
        self.now_s = time.monotonic()
        self.blame(v for record in records for v in self.checker.check(record))
        self.ledger.take_marks(marks_of(records), self.now_s)
