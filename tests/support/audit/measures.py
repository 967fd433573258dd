"""Checks for long runs: each call of the pool must end, and memory must not grow."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median

HUNG_S = 240.0
"""Limit of a step in seconds, including recovery from any faults."""


@contextmanager
def bounded(limit_s: float = HUNG_S) -> Iterator[None]:
    """End the program with a traceback if the block takes too long."""
    with suppress(RuntimeError):  # an attack can use up all threads, so that the timer gets none
        faulthandler.dump_traceback_later(limit_s, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def growth_of(samples: Sequence[int]) -> tuple[int, int, int]:
    """The median of a run's second fifth, the median of its last fifth, and their difference."""
    part = max(1, len(samples) // 5)
    first, last = (
        int(median(samples[part : 2 * part] or samples)),
        int(median(samples[-part:])),
    )
    return first, last, last - first
