"""Keeps real-time games aligned whose envs are stepped together.

    env 0   observation ─────────────── action      the batch waits for the last observation:
    env 1            observation ─────── action     an early env waits as long in every step
    env 2                    observation ─ action

Games that began together drift apart when one of them overruns a period, fails, or begins another
episode. From then on an early game's actions are late by its lead. So the early game is delayed:
one of its periods is made longer, by the whole game loops of its lead.

Rules: this module is pure. An env's lead is its minimum over three batches, so one slow answer
delays no env. The last env is never delayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BATCHES: Final = 3


class Alignment:
    """The alignment of one pool's envs."""

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self._leads_s: list[list[float]] = []

    def note(self, gaps_s: Sequence[float] | None) -> None:
        """Note the lateness in a batch.

        Args:
            gaps_s: for each env, the time from its observation to its action. None unless all envs
                were stepped together and no episode ended.
        """
        if gaps_s is None:
            self._leads_s.clear()
            return
        last_s = min(gaps_s)
        self._leads_s.append([gap_s - last_s for gap_s in gaps_s])

    def delays_loops(self) -> list[int] | None:
        """By how many loops to delay each env's next period; None if no env is delayed."""
        if len(self._leads_s) < _BATCHES:
            return None
        leads_s = [min(of_env) for of_env in zip(*self._leads_s, strict=True)]
        self._leads_s.clear()
        loops = [int(lead_s * self._loops_per_s) for lead_s in leads_s]
        return loops if any(loops) else None
