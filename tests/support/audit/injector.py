"""Harms a running pool at random instants, and records each harm in the ledger.

A thread harms an env's instance or a spare, whether it is launching, resetting or stepping: its
game, of a match the host's or the guest's, or its worker. What is done to a worker is done to all
that live in it. Harms that only the API can do (`hang`, `crash`,
`exit`) are sent by the trainer's loop with the next action. No instance is harmed twice, so each
fault has one cause.
"""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

from sc2pool.pool.statistics.stats import InstanceStats
from tests.support.audit.ledger import Ledger
from tests.support.audit.task import HARMS

BY_SIGNAL = {
    "game KILL": signal.SIGKILL,
    "game STOP": signal.SIGSTOP,
    "game ABRT": signal.SIGABRT,
    "worker KILL": signal.SIGKILL,
    "worker STOP": signal.SIGSTOP,
    "worker TERM": signal.SIGTERM,
}
BY_SIGNAL_OF_MATCH = BY_SIGNAL | {
    harm.replace("game", "guest"): number
    for harm, number in BY_SIGNAL.items()
    if harm.startswith("game")
}
"""The game is the host's then."""
_NOTICED_WITHIN_S = 0.05
"""After the end of a worker no instance moves in any more once this has passed."""
_LOOK_EVERY_S = 0.002
_STOPS_WITHIN_S = 0.1
BY_API = tuple(f"game {harm}" for harm in HARMS[1:])


class Injector:
    """Harms an instance about every `every_s` seconds, until it is stopped.

    Args:
        instances: the pool's instances at this moment.
        ledger: records each harm before it is done.
        every_s: mean time between two harms.
        seed: of the choice of instants, instances and harms.
        rows: how many each env has; two of a match.
    """

    def __init__(
        self,
        instances: Callable[[], Sequence[InstanceStats]],
        ledger: Ledger,
        every_s: float,
        seed: int | None,
        rows: int = 1,
    ) -> None:
        self._rows = rows
        self._by_signal = BY_SIGNAL if rows == 1 else BY_SIGNAL_OF_MATCH
        self._instances = instances
        self._ledger = ledger
        self._every_s = every_s
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._wanted: list[str] = []
        self._harmed_workers: dict[int, tuple[str, float]] = {}
        """What was done to a worker, and until when instances may still move in."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="injector", daemon=True)
        self.done: Counter[str] = Counter()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """No harm is done once this returns; late instances are still noted."""
        with self._lock:
            self._stop.set()
            self._wanted.clear()

    def harms(self, rows: Sequence[int]) -> list[int]:
        """Index in `HARMS` for the next action of each of these rows."""
        harms = [0] * len(rows)
        with self._lock:
            if self._wanted:
                instances = self._instances()
                playing = [instances[row // self._rows] for row in rows]
                places = [
                    place
                    for place, instance in enumerate(playing)
                    # An instance that is not playing gets no action: its env has a fault to report.
                    if instance.state == "playing"
                    and instance.instance not in self._ledger.injected
                ]
                if places:
                    place = self._rng.choice(places)
                    harm = self._wanted.pop()
                    self._note(playing[place].instance, harm)
                    harms[place] = HARMS.index(harm.split()[1])
        return harms

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wait(self._rng.uniform(0.0, 2.0 * self._every_s))
            harm = self._rng.choice([*self._by_signal, *BY_API])
            with self._lock:
                if self._stop.is_set():
                    break
                if harm in BY_API:
                    self._wanted.append(harm)
                else:
                    self._strike(harm)
        while self._harmed_workers:
            self._wait(_LOOK_EVERY_S)

    def _wait(self, seconds: float) -> None:
        """Wait, and note late instances meanwhile."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_EVERY_S if self._harmed_workers else _STOPS_WITHIN_S))
            with self._lock:
                self._note_late_instances()

    def _strike(self, harm: str) -> None:
        target = harm.split(maxsplit=1)[0]
        instances = list(self._instances())
        self._rng.shuffle(instances)
        for victim in instances:
            if target != "worker" and victim.pid is None and self._has_neighbours(victim):
                continue  # which of the worker's games is its own is not known yet
            pid = pid_of(victim, target, self._rows)
            harmed = self._of_worker(pid) if target == "worker" else [victim.instance]
            if pid is None or self._ledger.injected.keys() & {victim.instance, *harmed}:
                continue
            for instance in harmed:
                self._note(instance, harm)
            try:
                os.kill(pid, self._by_signal[harm])
            except ProcessLookupError:
                for instance in harmed:
                    self._ledger.withdraw(instance)
                    self.done[harm] -= 1
                return
            if target == "worker":
                self._harmed_workers[pid] = harm, math.inf
            return

    def _note_late_instances(self) -> None:
        """An instance may move into a worker that was harmed, before the pool notices."""
        for pid, (harm, until_s) in list(self._harmed_workers.items()):
            for instance in set(self._of_worker(pid)) - self._ledger.injected.keys():
                self._note(instance, harm)
            if until_s == math.inf and not is_alive(pid):
                self._harmed_workers[pid] = harm, time.monotonic() + _NOTICED_WITHIN_S
            elif time.monotonic() > until_s:
                del self._harmed_workers[pid]

    def _of_worker(self, pid: int | None) -> list[int]:
        """The instances that live in this worker."""
        return [one.instance for one in self._instances() if one.worker_pid == pid]

    def _has_neighbours(self, instance: InstanceStats) -> bool:
        return len(self._of_worker(instance.worker_pid)) > 1

    def _note(self, instance: int, harm: str) -> None:
        self._ledger.inject(instance, harm)
        self.done[harm] += 1


def is_alive(pid: int) -> bool:
    """True unless the process has ended."""
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def pid_of(instance: InstanceStats, target: str, games: int = 1) -> int | None:
    """The worker's or a game's process, also while it launches; None if there is none yet.

    Args:
        instance: whose.
        target: "worker", "game" or, of a match, "guest".
        games: how many the instance has.
    """
    with suppress(psutil.Error):
        worker = psutil.Process(instance.worker_pid)
        if worker.ppid() != os.getpid() or worker.status() == psutil.STATUS_ZOMBIE:
            return None
        if target == "worker":
            return worker.pid
        pids = [instance.pid, *(game["pid"] for game in instance.other_games)]
        if instance.pid is None:
            pids = [child.pid for child in worker.children()]
        return pids[target == "guest"] if len(pids) == games else None
    return None
