"""A pool's statistics at one moment, read in any thread; the watchdog's thread adds rates.

    take        ─► PoolStats: `Pool.stats`, Prometheus
    after_sample  ─► rates, `history`, and the run's live files while they are requested

The step path needs no lock, because the trainer's thread is the only writer. The step path writes
single values (a state, two counters, an instance's sequence number), and each is read atomically.
Collections (`Counters`) have a lock that no plain step takes. So two figures of one snapshot may be
read at different moments, less than a millisecond apart. No decision depends on these figures.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sc2pool.pool.measures import History, Rates
from sc2pool.pool.report import live_files
from sc2pool.pool.statistics import Counters, InstanceStats, PoolStats, fault_count

RATE_WINDOW_S = 5.0
EVENTS_IN_FILE = 20
"""How many of the newest events `pool.json` has; `stats()` has more."""

RETURN, STEPS_PER_S = "mean return", "steps/s"
"""Names of the pool's own curves."""

_POOL = "pool"


class Snapshots:
    """Takes snapshots of one pool."""

    def __init__(self, counters: Counters, run: Path) -> None:
        self._counters = counters
        self._run = run
        self._rates = Rates(RATE_WINDOW_S)
        self._per_s: Mapping[str, float | None] = {}
        """The newest rates; the dict is replaced, never changed, as other threads read it."""
        self._history = History()
        self._written: int | None = None
        """`History.changes` when `curve.json` was written; None if no file is requested."""

    def take(self, instances: Sequence[InstanceStats], watchdog_cpu_s: float) -> PoolStats:
        """The pool's statistics now; may be called in any thread."""
        per_s = self._per_s
        replacements = self._counters.replacements_by_seat()
        episodes = self._counters.episodes_by_seat()
        return self._counters.snapshot(
            [
                replace(
                    row,
                    steps_per_s=per_s.get(_steps(row)),
                    cpu_share=per_s.get(_cpu(row)),
                    replacements=replacements.get(row.seat, {}),
                    faults=fault_count(replacements.get(row.seat, {})),
                    episodes=episodes.get(row.seat, 0),
                )
                for row in instances
            ],
            steps_per_s=per_s.get(_POOL),
            watchdog_cpu_s=watchdog_cpu_s,
        )

    def after_sample(self, instances: Sequence[InstanceStats]) -> None:
        """Compute the rates, note the history, and write the files if they are requested.

        Called in the watchdog's thread.
        """
        counters = self._counters
        counted: dict[str, float] = {_POOL: counters.env_steps}
        for row in instances:
            counted[_steps(row)] = row.steps
            if row.cpu_s is not None:
                counted[_cpu(row)] = row.cpu_s
        self._rates.note(time.monotonic(), counted)
        self._per_s = {name: self._rates.per_s(name) for name in counted}
        shown_figures = {
            RETURN: counters.mean_return,
            STEPS_PER_S: self._per_s[_POOL],
            **counters.learner,
        }
        self._history.note(counters.uptime_s, counters.env_steps, shown_figures)
        if not live_files.is_requested(self._run):
            self._written = None
        else:
            stats = self.take(instances, time.thread_time())
            shown = replace(stats, events=stats.events[-EVENTS_IN_FILE:])
            live_files.write(self._run / live_files.POOL_FILE, shown.as_dict())
            if self._written != self._history.changes:
                self._written = self._history.changes
                live_files.write(self._run / live_files.CURVE_FILE, self._history.as_dict())


def _steps(row: InstanceStats) -> str:
    return f"steps {row.instance}"


def _cpu(row: InstanceStats) -> str:
    return f"cpu {row.instance}"
