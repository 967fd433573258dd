"""How far apart games in real time are that are acted on together, and what brings them in step.

    env 0   observation ─────────────── action      the batch waits for the last observation:
    env 1            observation ─────── action      whoever is early waits as long in every step
    env 2                    observation ─ action

Games that began together drift apart when one of them overruns a period, fails, or begins another
episode, and an early game's actions are late from then on by as much as it is early. So it is put
off: one of its periods is made longer, once, by the whole loops that it is early. Rules: pure; what
counts is the least that an env was early by in some batches in a row, so one slow answer moves
nobody; the last one is never moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BATCHES: Final = 3


class Alignment:
    """Of the envs of one pool.

    Args:
        loops_per_s: the pace of the games.
    """

    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self._early_s: list[list[float]] = []

    def note(self, gaps_s: Sequence[float]) -> None:
        """A batch in which all envs were acted on at once: the gap of each."""
        last_s = min(gaps_s)
        self._early_s.append([gap_s - last_s for gap_s in gaps_s])

    def forget(self) -> None:
        """An episode has begun, or the envs were not acted on at once."""
        self._early_s.clear()

    def delay(self) -> list[int] | None:
        """By how many loops each env's next period is to begin later; None if none is."""
        if len(self._early_s) < _BATCHES:
            return None
        early_s = [min(of_env) for of_env in zip(*self._early_s, strict=True)]
        self.forget()
        loops = [int(seconds * self._loops_per_s) for seconds in early_s]
        return loops if any(loops) else None
