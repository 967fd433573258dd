"""Keeps games in real time aligned that are acted on together.

    env 0   observation ─────────────── action      the batch waits for the last observation:
    env 1            observation ─────── action     an early env waits as long in every step
    env 2                    observation ─ action

Games that began together drift apart when one of them overruns a period, fails, or begins another
episode, and an early game's actions are late from then on by its lead. So it is delayed: one of its
periods is made longer, once, by the whole loops that it leads by. Rules: pure. What counts is the
minimum lead over three batches, so one slow answer delays no env. The last env is never delayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BATCHES: Final = 3


class Alignment:
    """Of the envs of one pool."""

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self._leads_s: list[list[float]] = []

    def note(self, gaps_s: Sequence[float] | None) -> None:
        """A batch has come.

        Args:
            gaps_s: of each env, the time from its observation to its action; None unless all envs
                were acted on together and all go on with their episodes.
        """
        if gaps_s is None:
            self._leads_s.clear()
            return
        last_s = min(gaps_s)
        self._leads_s.append([gap_s - last_s for gap_s in gaps_s])

    def delays_loops(self) -> list[int] | None:
        """How many loops later each env's next period begins; None if no env is delayed."""
        if len(self._leads_s) < _BATCHES:
            return None
        leads_s = [min(of_env) for of_env in zip(*self._leads_s, strict=True)]
        self._leads_s.clear()
        loops = [int(lead_s * self._loops_per_s) for lead_s in leads_s]
        return loops if any(loops) else None
