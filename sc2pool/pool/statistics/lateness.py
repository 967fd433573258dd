"""The lateness of actions in real time: percentiles and the longest gap, never only an average.

    Tick of each step ─► LatenessCounter ─► RealtimeStats, which is `stats().realtime`

Rule: only the trainer's thread counts, and any thread may read.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from sc2pool.game.clock import Tick
from sc2pool.pool.statistics.durations import DurationCounter, Durations, figures


@dataclass(frozen=True)
class Lateness:
    """The lateness of the actions of an env, or of some envs together.

    Attributes:
        steps: steps in real time.
        gap_s: the time from an observation to its action, without pauses. None before the first
            step.
        misses: actions that arrived after the end of their decision period.
        lost_periods: decision periods that passed without a new action.
        skipped_loops: game loops by which decision periods were delayed. A period is delayed if an
            action was late by a whole period or more (see `sc2pool.game.clock`).
    """

    steps: int
    gap_s: Durations | None
    misses: int
    lost_periods: int
    skipped_loops: int


@dataclass(frozen=True)
class HeldSpares:
    """Spares in real time, which are stopped at their first observation until an env takes them.

    Attributes:
        held: spares that were stopped and have resumed.
        loops: game loops that passed while they were stopped. Should be 0.
        problem: why spares cannot be stopped, so that the pool has no spares. Empty if they can be
            stopped.
    """

    held: int
    loops: int
    problem: str


@dataclass(frozen=True)
class RealtimeStats(Lateness):
    """The lateness of the actions of all envs together.

    Attributes:
        envs: the lateness of each env, by its name (`"env 0"`).
        spares: figures of the held spares.
    """

    envs: dict[str, Lateness]
    spares: HeldSpares


@dataclass
class _EnvCounter:
    """Sums of one env's steps."""

    gaps_s: DurationCounter = field(default_factory=DurationCounter)
    misses: int = 0
    lost_periods: int = 0
    skipped_loops: int = 0

    def note(self, tick: Tick) -> None:
        self.gaps_s.add(tick.gap_s)
        self.misses += tick.lost_periods > 0
        self.lost_periods += tick.lost_periods
        self.skipped_loops += tick.skipped_loops


class LatenessCounter:
    """Counts the lateness of all envs of a pool, and its held spares."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may read during a count
        self._envs: dict[int, _EnvCounter] = {}
        self._held = 0
        self._held_loops = 0
        self._problem = ""

    def note(self, env: int, tick: Tick) -> None:
        """Count a step of this env."""
        with self._lock:
            self._envs.setdefault(env, _EnvCounter()).note(tick)

    def note_hold(self, loops: int | None) -> None:
        """Count a spare that has resumed.

        Args:
            loops: game loops that passed while it was stopped. None if unknown.
        """
        with self._lock:
            self._held += 1
            self._held_loops += loops or 0

    def note_problem(self, problem: str) -> bool:
        """Note why a game cannot be held.

        Returns:
            True if this is the pool's first problem.
        """
        with self._lock:
            first = not self._problem
            self._problem = problem
        return first

    def snapshot(self) -> RealtimeStats:
        """The figures now."""
        with self._lock:
            together = _lateness(*self._envs.values())
            return RealtimeStats(
                **vars(together),
                envs={f"env {env}": _lateness(self._envs[env]) for env in sorted(self._envs)},
                spares=HeldSpares(self._held, self._held_loops, self._problem),
            )


def _lateness(*envs: _EnvCounter) -> Lateness:
    return Lateness(
        steps=sum(env.gaps_s.count for env in envs),
        gap_s=figures(*(env.gaps_s for env in envs)),
        misses=sum(env.misses for env in envs),
        lost_periods=sum(env.lost_periods for env in envs),
        skipped_loops=sum(env.skipped_loops for env in envs),
    )
