"""Computes when an action is due in a game that runs in real time, and how late the action came.

    Loop 8                              loop 16                             loop 24
    observation ─ gap ─ action ──────── observation ─ gap ─ action ──────── observation
    └────── a decision period ─────────┘└────── the next one ──────────────┘.

A decision period is `step_mul` game loops, and its action is due when the period begins. The clock
is elastic: a period begins at the end of the previous period, so a late action shortens only its
own period. If an action is late by a whole period or more, the lost time is not made up for. The
grid of periods then begins again at the observed loop, and the loops in between are skipped. A pool
of several games may delay the next period of one game, so that all actions are due together.

No request asks the game to wait for a later loop: if the episode ends before that loop, the game
may never answer. So `LoopTimer` predicts when the game reaches a loop. The caller sleeps until the
predicted time and requests the current state.

Rules: all functions are pure; all times and the pace are arguments. The time for which a game is
paused does not count as delay.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from sc2pool.protocol import LOOPS_PER_S


class Tick(NamedTuple):
    """How late one step in real time was."""

    gap_s: float
    """The time from the observation to the action, without pauses of the game."""
    lost_periods: int
    """The number of decision periods that ended before the action came."""
    skipped_loops: int
    """Loops by which the grid moved; 0 unless the action was a period late or a delay was set."""


class ElasticClock:
    """Keeps the grid of decision periods; each episode begins a new grid."""

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self.begun_at = 0
        """The loop at which the running period began, or at which the next period begins."""
        self._seen_loop = 0
        """The newest known loop."""
        self._moved_loops = 0
        self.delay_loops = 0
        self._loops = 1
        self._observed_s = 0.0
        self._paused_at_s: float | None = None
        self._paused_s = 0.0
        """How long the game was paused since the newest observation."""
        self._gap_s = 0.0

    def begin(self, loop: int, now_s: float) -> None:
        """Begin the grid at the loop of an episode's first observation."""
        self.begun_at = loop
        self.delay_loops = 0
        self._paused_at_s = None
        self._seen(loop, now_s)

    @property
    def next_begin(self) -> int:
        """The loop at which the period of the next action begins."""
        return self.begun_at + self.delay_loops

    def delay(self, loops: int) -> None:
        """Move the beginning and the end of the next action's period by this many loops."""
        self.delay_loops = loops

    def act(self, loops: int, now_s: float) -> int:
        """Record that an action is sent, and return the loop at which its period of `loops` ends.

        If the whole period is known to have passed already, the action gets a new period.
        """
        self._gap_s = max(0.0, now_s - self._observed_s - self._paused_s)
        self._loops = loops
        late = self._seen_loop - self.begun_at
        self._moved_loops = late if late >= loops else 0
        self.begun_at += self._moved_loops + self.delay_loops
        return self.begun_at + loops

    def observe(self, loop: int, now_s: float) -> Tick:
        """Record that the observation after the action shows this loop."""
        due = self.begun_at + self._loops
        late = loop - due if loop - due >= self._loops else 0
        passed = self._moved_loops + (loop - self.begun_at if late else 0)
        # Periods counted by time lack the loops that a game played although it was paused.
        # Periods counted by seen loops may lack the gap's end, so take the larger count.
        lost_periods = max(
            int(self._gap_s * self._loops_per_s / self._loops), passed // self._loops
        )
        self.begun_at = due + late
        self._seen(loop, now_s)
        delay, self.delay_loops = self.delay_loops, 0
        return Tick(self._gap_s, lost_periods, self._moved_loops + delay + late)

    def note_loop(self, loop: int) -> None:
        """Record that the game was seen at this loop, without an action."""
        self._seen_loop = loop

    def pause(self, now_s: float) -> None:
        """Record that the game is paused from now on."""
        self._paused_at_s = now_s

    def resume(self, now_s: float) -> None:
        """Record that the game continues."""
        if self._paused_at_s is not None:
            self._paused_s += now_s - self._paused_at_s
            self._paused_at_s = None

    def _seen(self, loop: int, now_s: float) -> None:
        self._seen_loop = max(loop, self.begun_at)
        self._observed_s = now_s
        self._paused_s = 0.0


class LoopTimer:
    """Predicts when a game in real time reaches a loop.

    Each observation bounds the instant at which loop 0 would have begun: the game was at the
    observed loop at some instant between the request and its reply. While the bounds are far apart,
    the prediction is their midpoint. An observation at the predicted time halves the distance
    between the bounds. If this observation does not show the loop yet, the caller observes again a
    few milliseconds later. If a game falls behind its bounds, the caller observes it at longer and
    longer intervals.
    """

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self.forget()

    def forget(self) -> None:
        """Forget the bounds, because the game was stopped or another episode begins."""
        self._earliest_s, self._latest_s = -math.inf, math.inf
        self._noted_s = 0.0
        self._behind_s = 0.0
        """If the game is behind its bounds, the newest interval between observations; else 0."""

    def note(self, loop: int, asked_s: float, answered_s: float) -> None:
        """Record the loop of an observation, and when it was requested and answered."""
        # Widen the bounds a little each second, because the two clocks may drift apart.
        self._earliest_s -= _DRIFT * (answered_s - self._noted_s)
        self._noted_s = answered_s
        earliest_s = asked_s - (loop + 1) / self._loops_per_s
        latest_s = answered_s - loop / self._loops_per_s
        if earliest_s > self._latest_s - _LEAST_S:  # the game is behind the prediction
            self._behind_s = min(max(2 * self._behind_s, _EXACT_S), 1 / self._loops_per_s)
            self._earliest_s = earliest_s
            self._latest_s = min(latest_s, earliest_s + self._behind_s)
            return
        self._behind_s = 0.0
        if latest_s < self._earliest_s:  # the game is ahead of the prediction
            self._earliest_s = earliest_s
        self._earliest_s = max(earliest_s, self._earliest_s)
        self._latest_s = min(latest_s, self._latest_s)

    def due_s(self, loop: int) -> float:
        """When to request an observation of this loop; minus infinity if there are no bounds."""
        apart_s = self._latest_s - self._earliest_s
        if apart_s == math.inf:
            return -math.inf
        halve = apart_s > _EXACT_S and not self._behind_s
        begun_s = self._latest_s - apart_s / 2 if halve else self._latest_s
        return begun_s + loop / self._loops_per_s


_EXACT_S: Final = 0.003
"""If a prediction's bounds are at most this many seconds apart, their midpoint is not tried."""
_LEAST_S: Final = 0.0001
"""If the two bounds are closer than this, in seconds, the game is behind its prediction."""
_DRIFT: Final = 0.0005
"""How far our clock and the game's may drift apart, in seconds per second; a generous bound."""


def loops_passed(before: int, after: int, ran_s: float) -> int:
    """The game loops that a game in real time has played although it was paused.

    `before` is the last loop seen before the pause, `after` the first loop seen after the pause.
    Between these two observations the game ran for `ran_s` seconds. The result is 0 if `ran_s` is
    long enough for all loops: one loop that was nearly over, plus as many as fit into that time.
    """
    loops = after - before
    return 0 if loops <= 1 + int(ran_s * LOOPS_PER_S) else loops
