"""When an action is due in a game that runs in real time, and how late it came.

    loop 8                              loop 16                             loop 24
    observation ─ gap ─ action ──────── observation ─ gap ─ action ──────── observation
    └────── a decision period ─────────┘└────── the next one ──────────────┘

A decision period is `step_mul` game loops, and its action is due at its beginning. The clock is
elastic: a period begins at the end of the one before, so a late action shortens its own period
and not all that follow. If an action is late by a whole period or more, the lost time is not made
up for: the grid begins again at the loop that was seen, and the loops it moved by are skipped. A
pool that plays several games together may delay one, so that all are due together.

No request waits at the game for a loop that is still to come, because the game may never answer it
(if the episode ends first). So `LoopTimer` predicts when the game comes to a loop: the caller
sleeps until then and asks for the state as it is.

Rules: pure, all times are arguments, and the pace too; the time for which a game is paused is no
delay.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from sc2pool.protocol.game_time import LOOPS_PER_S


class Tick(NamedTuple):
    """How late one step in real time was.

    Attributes:
        gap_s: from the observation to the action, less the time for which the game was paused.
        lost_periods: decision periods that ended before this action came.
        skipped_loops: by how many loops the grid moved; 0 unless a whole period was overrun, or
            the game was delayed.
    """

    gap_s: float
    lost_periods: int
    skipped_loops: int


class ElasticClock:
    """The grid of decision periods of one episode after another.

    Attributes:
        begun_at: the loop at which the running period began, or the next one begins.
        delay_loops: how much later the next period begins.
    """

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self.begun_at = 0
        self._seen_loop = 0
        """The newest loop known."""
        self._moved_loops = 0
        self.delay_loops = 0
        self._loops = 1
        self._observed_s = 0.0
        self._paused_at_s: float | None = None
        self._paused_s = 0.0
        """How long the game was paused since the newest observation."""
        self._gap_s = 0.0

    def begin(self, loop: int, now_s: float) -> None:
        """An episode's first observation: the grid begins there."""
        self.begun_at = loop
        self.delay_loops = 0
        self._paused_at_s = None
        self._seen(loop, now_s)

    @property
    def next_begin(self) -> int:
        """The loop at which the period of the next action begins."""
        return self.begun_at + self.delay_loops

    def delay(self, loops: int) -> None:
        """Make the period of the next action begin and end this many loops later."""
        self.delay_loops = loops

    def act(self, loops: int, now_s: float) -> int:
        """An action is sent, for a period of this many loops; returns the loop at its end.

        If the whole period is known to have passed already, the action gets another.
        """
        self._gap_s = max(0.0, now_s - self._observed_s - self._paused_s)
        self._loops = loops
        late = self._seen_loop - self.begun_at
        self._moved_loops = late if late >= loops else 0
        self.begun_at += self._moved_loops + self.delay_loops
        return self.begun_at + loops

    def observe(self, loop: int, now_s: float) -> Tick:
        """The observation after that action, of this loop."""
        due = self.begun_at + self._loops
        late = loop - due if loop - due >= self._loops else 0
        passed = self._moved_loops + (loop - self.begun_at if late else 0)
        # Both count: a game may have run on in a pause, which only the loops show; a gap may be
        # longer than the loops seen so far.
        lost_periods = max(
            int(self._gap_s * self._loops_per_s / self._loops), passed // self._loops
        )
        self.begun_at = due + late
        self._seen(loop, now_s)
        delay, self.delay_loops = self.delay_loops, 0
        return Tick(self._gap_s, lost_periods, self._moved_loops + delay + late)

    def note_loop(self, loop: int) -> None:
        """The game was seen at this loop, and no action follows."""
        self._seen_loop = loop

    def pause(self, now_s: float) -> None:
        """The game is paused from now on."""
        self._paused_at_s = now_s

    def resume(self, now_s: float) -> None:
        """The game continues."""
        if self._paused_at_s is not None:
            self._paused_s += now_s - self._paused_at_s
            self._paused_at_s = None

    def _seen(self, loop: int, now_s: float) -> None:
        self._seen_loop = max(loop, self.begun_at)
        self._observed_s = now_s
        self._paused_s = 0.0


class LoopTimer:
    """Predicts when a game in real time comes to a loop.

    Each observation bounds the instant at which loop 0 would have begun: the game showed that loop,
    and not the next one, at some time between the request and its reply. While the bounds lie far
    apart, the prediction is in the middle of them, so that the next observation halves the
    distance: either it shows the loop, or the caller looks again a few milliseconds later. A game
    that falls behind its bounds is looked for in longer and longer steps.
    """

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self.forget()

    def forget(self) -> None:
        """The game was stopped, or another episode begins: nothing is known."""
        self._earliest_s, self._latest_s = -math.inf, math.inf
        self._noted_s = 0.0
        self._behind_s = 0.0
        """The newest step to a game that is behind its bounds; 0 if it is not."""

    def note(self, loop: int, asked_s: float, answered_s: float) -> None:
        """An observation that was asked for and answered at these times shows this loop."""
        # A little more each second: the two clocks may run apart.
        self._earliest_s -= _DRIFT * (answered_s - self._noted_s)
        self._noted_s = answered_s
        earliest_s = asked_s - (loop + 1) / self._loops_per_s
        latest_s = answered_s - loop / self._loops_per_s
        if (
            earliest_s > self._latest_s - _LEAST_S
        ):  # the game is behind the prediction, and may stay so
            self._behind_s = min(max(2 * self._behind_s, _EXACT_S), 1 / self._loops_per_s)
            self._earliest_s = earliest_s
            self._latest_s = min(latest_s, earliest_s + self._behind_s)
            return
        self._behind_s = 0.0
        if latest_s < self._earliest_s:  # it is ahead of the prediction
            self._earliest_s = earliest_s
        self._earliest_s = max(earliest_s, self._earliest_s)
        self._latest_s = min(latest_s, self._latest_s)

    def due_s(self, loop: int) -> float:
        """When to look for this loop; minus infinity if nothing is known."""
        apart_s = self._latest_s - self._earliest_s
        if apart_s == math.inf:
            return -math.inf
        halve = apart_s > _EXACT_S and not self._behind_s
        begun_s = self._latest_s - apart_s / 2 if halve else self._latest_s
        return begun_s + loop / self._loops_per_s


_EXACT_S: Final = 0.003
"""Bounds this close are close enough."""
_LEAST_S: Final = 0.0001
"""A look at the latest instant that does not show the loop: the game is behind it."""
_DRIFT: Final = 0.0005
"""Seconds per second by which the game's clock may differ from ours, and more than it should."""


def loops_passed(before: int, after: int, ran_s: float) -> int:
    """Game loops that passed while a game in real time was paused.

    Loops that may have passed in `ran_s` do not count: one that was nearly over, and as many as
    that time has room for.

    Args:
        before: the last loop seen before the pause.
        after: the first loop seen after it.
        ran_s: how long, between the two, the game was not paused.
    """
    loops = after - before
    return 0 if loops <= 1 + int(ran_s * LOOPS_PER_S) else loops
