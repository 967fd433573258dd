"""The elastic clock: when the next action is due.

    due ────────► due + period ────────► …          a late action shortens its own period
    due ──────────────────► now ─► now + period     if it is a whole period late, the clock restarts

The unit of time is the caller's. The env counts the game's ticks instead of seconds: a paused game
has no ticks, so a pause does not count as a miss.
"""

from __future__ import annotations


class ElasticClock:
    """Consecutive decision periods.

    Args:
        period: length of a decision period, in the unit of `now`.
        now: beginning of the first period.
    """

    def __init__(self, period: int, now: int) -> None:
        self._period = period
        self.due = now
        """The time when the next action is due, which is the end of the current period."""
        self.late = 0
        """Delay of the newest action."""
        self.misses = 0
        """Number of whole periods without a new action."""

    def begin_period(self, now: int) -> None:
        """Begin the period of a new action; it ends at `due`."""
        self.late = max(0, now - self.due)
        missed = self.late // self._period
        if missed:
            self.misses += missed
            self.due = now
        self.due += self._period
