"""Checks of a long run on itself: each call ends, and memory does not grow."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median

HUNG_S = 240.0
"""Limit of a step, including recovery from any faults."""


@contextmanager
def bounded(limit_s: float = HUNG_S) -> Iterator[None]:
    """End the program with a traceback if this takes too long."""
    with suppress(RuntimeError):  # no thread can be started for it: an attack on processes
        faulthandler.dump_traceback_later(limit_s, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def growth_of(samples: Sequence[int]) -> tuple[int, int, int]:
    """Median of the second and of the last fifth of a run, and the difference."""
    part = max(1, len(samples) // 5)
    first, last = (
        int(median(samples[part : 2 * part] or samples)),
        int(median(samples[-part:])),
    )
    return first, last, last - first
