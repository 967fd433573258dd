"""The elastic clock: when the next action is due.

    due ────────► due + period ────────► …          an action that comes late shortens its period
    due ──────────────────► now ─► now + period     one that comes a whole period late begins anew

The clock knows no unit. The env counts the game's own ticks with it, not seconds: while the game
is paused none pass, so a pause is no miss, whoever has paused it.
"""

from __future__ import annotations


class ElasticClock:
    """Decision periods that follow one another, as far as actions come in time.

    Args:
        period: length of a decision period, in whatever `now` counts.
        now: when the first one begins.
    """

    def __init__(self, period: int, now: int) -> None:
        self._period = period
        self.due = now
        """When the next action is due: the end of the period that runs."""
        self.late = 0
        """How late the newest action was."""
        self.misses = 0
        """Whole periods that passed without a new action."""

    def begin_period(self, now: int) -> None:
        """A new action is there: its period begins, and ends at `due`."""
        self.late = max(0, now - self.due)
        missed = self.late // self._period
        if missed:
            self.misses += missed
            self.due = now
        self.due += self._period
