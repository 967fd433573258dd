"""Durations, sizes and names of games as text for people."""

from __future__ import annotations

import math

from sc2pool.foreign import printable

NONE = "–"
"""The text for a missing figure."""


def size(value: float) -> str:
    """A number of bytes, in megabytes or gigabytes."""
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


def milliseconds(seconds: float) -> str:
    """A short time: 0.4ms, 12ms, 1.5s."""
    if seconds >= 1.0:
        return f"{seconds:.1f}s"
    return f"{1e3 * seconds:.0f}ms" if seconds >= 0.01 else f"{1e3 * seconds:.1f}ms"


def is_standin(game_version: str | None) -> bool:
    """True if this version is one of the stand-in."""
    return (game_version or "").startswith("standin")


def game_name(game_version: str | None) -> str:
    """A game's version, with a warning if the game is the stand-in."""
    if not game_version:
        return "no game"
    warning = " (stand-in, not StarCraft II)" if is_standin(game_version) else ""
    return printable(game_version) + warning
