"""The curves of several pools as those of one, on the time axis of the pool that is oldest.

Rules: a pool's value at some time is its newest sample until then; steps and steps per second are
sums, the mean return is a mean, and what a model logs is the same for all its pools.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from sc2pool.pool.report.snapshot import STEPS_PER_S

Curves = Mapping[str, Any]
"""See `History.as_dict`."""


def merge_curves(parts: Sequence[tuple[float, Curves]]) -> dict[str, Any]:
    """One pool's curves, of several.

    Args:
        parts: how long each pool has run, in seconds, and its curves; at least one.
    """
    oldest_s, axis = max(parts, key=lambda part: part[0])
    times_s = axis["at_s"]

    def column(at_s: float, name: str | None) -> list[float]:
        """The values of all pools at a time; of the steps for None."""
        found = []
        for uptime_s, curves in parts:
            values = curves["steps"] if name is None else curves["figures"].get(name)
            newest = bisect_right(curves["at_s"], at_s - (oldest_s - uptime_s) + 1e-6) - 1
            if values is not None and newest >= 0 and values[newest] is not None:
                found.append(values[newest])
        return found

    names = dict.fromkeys(name for _, curves in parts for name in curves["figures"])
    return {
        "at_s": times_s,
        "steps": [sum(column(at_s, None)) for at_s in times_s],
        "figures": {
            name: [_joined(name, column(at_s, name)) for at_s in times_s] for name in names
        },
    }


def _joined(name: str, values: Sequence[float]) -> float | None:
    if not values:
        return None
    return sum(values) if name == STEPS_PER_S else sum(values) / len(values)
