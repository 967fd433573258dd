"""Which side of a match is to blame if a reply does not come.

In lock-step no game answers before both players have asked for their step, so one that hangs makes
the other look hung too. What the system shows of both processes tells them apart:

    one has answered            the other one is to blame
    both have not               the only one that shows the gravest sign: it has ended, is stopped,
                                does not read its requests, computes, stands still

Rules: `judge` is pure; without a sign that tells them apart both are named, never one by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sc2pool.game.hang_detection import IDLE_CPU_SHARE

BUSY_CPU_SHARE: Final = 0.5
"""CPU seconds per second from which on a process computes; one that waits for the other player
uses less."""


class Side(StrEnum):
    """The two games of a match."""

    HOST = "host"
    """Its game creates; its player is player 1."""
    GUEST = "guest"


@dataclass(frozen=True)
class Evidence:
    """The operating system's view of a game whose reply was awaited."""

    answered: bool = False
    """All of its replies are there."""
    exited: bool = False
    stopped: bool = False
    """One of its processes is stopped by a signal."""
    unread: bool = False
    """Its socket holds requests that it has not read; False also if the system does not say."""
    cpu_share: float = 0.0
    """CPU seconds per second, at the end of the wait."""


class Verdict(NamedTuple):
    """Who is to blame, and why."""

    sides: tuple[Side, ...]
    """One, or both if nothing tells them apart."""
    why: str


_SIGNS: Sequence[tuple[str, Callable[[Evidence], bool]]] = (
    ("its process has ended", lambda seen: seen.exited),
    ("it is stopped by a signal", lambda seen: seen.stopped),
    ("it does not read its requests", lambda seen: seen.unread),
    ("it computes, and the other one waits", lambda seen: seen.cpu_share >= BUSY_CPU_SHARE),
    ("it uses no CPU time, the other one does", lambda seen: seen.cpu_share < IDLE_CPU_SHARE),
)
"""Symptoms of a game that hangs, the gravest first."""


def judge(evidence: Mapping[Side, Evidence]) -> Verdict:
    """Who is to blame for a reply that is missing."""
    owing = tuple(side for side, seen in evidence.items() if not seen.answered)
    if len(owing) == 1:
        return Verdict(owing, "the other one has answered")
    for why, shows in _SIGNS:
        showing = tuple(side for side in owing if shows(evidence[side]))
        if len(showing) == 1:
            return Verdict(showing, why)
    return Verdict(owing, "nothing tells which of them the other one waits for")
