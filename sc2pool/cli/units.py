"""Durations and sizes as people read them."""

from __future__ import annotations

import math

NONE = "–"
"""Stands for a figure that does not exist."""


def size(value: float) -> str:
    """Bytes in the unit that suits them."""
    return f"{value / 1e9:.1f}G" if value >= 1e9 else f"{value / 1e6:.0f}M"


def duration(seconds: float) -> str:
    """A rounded duration: 12s, 3m04s, 2h05m, 3d04h; a dash for infinity."""
    if not math.isfinite(seconds):
        return NONE
    whole_s = int(seconds)
    for big, small, unit_s in (("d", "h", 86_400), ("h", "m", 3600), ("m", "s", 60)):
        if whole_s >= unit_s:
            rest = whole_s % unit_s // {"d": 3600, "h": 60, "m": 1}[big]
            return f"{whole_s // unit_s}{big}{rest:02d}{small}"
    return f"{whole_s}s"
