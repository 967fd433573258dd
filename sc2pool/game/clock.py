"""When an action is due in a game that does not wait, and how late it came.

    loop 8                              loop 16                             loop 24
    observation ─ gap ─ action ──────── observation ─ gap ─ action ──────── observation
    └────── a decision period ─────────┘└────── the next one ──────────────┘

A decision period is `step_mul` game loops, and its action is due at its beginning. The clock is
elastic: a period begins where the one before was to end, so that a late action takes from its own
period and not from all that follow; where it overran by a whole period or more, that is not made
up for: the grid begins anew at the loop that was seen, and what it was moved by was skipped. Who
plays several games together may put one off, so that they are due together.
Rules: pure, all times are given, and the pace with them; the time for which a game is stopped is
nobody's delay.
"""

from __future__ import annotations

from typing import NamedTuple

from sc2pool.protocol.game_time import LOOPS_PER_S


class Tick(NamedTuple):
    """What one step in real time was late by.

    Attributes:
        gap_s: from the observation to the action, less the time for which the game was stopped.
        lost_periods: decision periods that ended before this action came: without a new one.
        skipped_loops: by which the grid was moved; 0 unless a whole period was overrun, or the
            game was put off.
    """

    gap_s: float
    lost_periods: int
    skipped_loops: int


class ElasticClock:
    """The grid of decision periods of one episode after another.

    Args:
        loops_per_s: the pace of the game.
    """

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self._begun_at = 0
        """The loop at which the running period began."""
        self._looked_at = 0
        """The newest loop known."""
        self._moved_loops = 0
        self._put_off_loops = 0
        self._loops = 1
        self._observed_s = 0.0
        self._stopped_s: float | None = None
        self._still_s = 0.0
        """For so long the game was stopped since the newest observation."""
        self._gap_s = 0.0

    def begin(self, loop: int, now_s: float) -> None:
        """An episode's first observation: the grid begins there."""
        self._begun_at = loop
        self._put_off_loops = 0
        self._stopped_s = None
        self._seen(loop, now_s)

    def delay(self, loops: int) -> None:
        """The period of the next action is to end so many loops later."""
        self._put_off_loops = loops

    def act(self, loops: int, now_s: float) -> int:
        """An action is sent, for a period of so many loops; the loop of the next observation.

        Where it is known already that the whole period has passed, the action gets another.
        """
        self._gap_s = max(0.0, now_s - self._observed_s - self._still_s)
        self._loops = loops
        late = self._looked_at - self._begun_at
        self._moved_loops = late if late >= loops else 0
        self._begun_at += self._moved_loops + self._put_off_loops
        return self._begun_at + loops

    def observe(self, loop: int, now_s: float) -> Tick:
        """The observation after that action, of this loop."""
        due = self._begun_at + self._loops
        late = loop - due if loop - due >= self._loops else 0
        passed = self._moved_loops + (loop - self._begun_at if late else 0)
        # The loops tell it where a game has gone on in a pause, the gap where it is not so late.
        lost_periods = max(
            int(self._gap_s * self._loops_per_s / self._loops), passed // self._loops
        )
        self._begun_at = due + late
        self._seen(loop, now_s)
        delay, self._put_off_loops = self._put_off_loops, 0
        return Tick(self._gap_s, lost_periods, self._moved_loops + delay + late)

    def look(self, loop: int) -> None:
        """The game was seen at this loop by somebody who does not act."""
        self._looked_at = loop

    def stop(self, now_s: float) -> None:
        """The game stands still from now on."""
        self._stopped_s = now_s

    def go_on(self, now_s: float) -> None:
        """It goes on."""
        if self._stopped_s is not None:
            self._still_s += now_s - self._stopped_s
            self._stopped_s = None

    def _seen(self, loop: int, now_s: float) -> None:
        self._looked_at = max(loop, self._begun_at)
        self._observed_s = now_s
        self._still_s = 0.0


def loops_passed(before: int, after: int, ran_s: float) -> int:
    """Game loops that passed while a game in real time was stopped.

    Args:
        before: the loop it was at when it was last looked at before the stop.
        after: the loop it was at when it was first looked at after it.
        ran_s: how long, between the two, it was not stopped.

    What may have passed in that time is not the stop's: one loop that was nearly over, and those
    for which there was time.
    """
    loops = after - before
    return 0 if loops <= 1 + int(ran_s * LOOPS_PER_S) else loops
