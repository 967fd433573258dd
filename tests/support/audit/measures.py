"""Checks that a long run makes of itself: each call ends, and memory does not grow."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median

HUNG_S = 240.0
"""Limit of a step, including recovery from any faults."""


@contextmanager
def bounded(limit_s: float = HUNG_S) -> Iterator[None]:
    """End the program with a traceback if the block takes too long."""
    with suppress(RuntimeError):  # an attack may leave no thread for the timer
        faulthandler.dump_traceback_later(limit_s, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def growth_of(samples: Sequence[int]) -> tuple[int, int, int]:
    """The medians of a run's second fifth and of its last fifth, and the difference."""
    part = max(1, len(samples) // 5)
    first, last = (
        int(median(samples[part : 2 * part] or samples)),
        int(median(samples[-part:])),
    )
    return first, last, last - first
