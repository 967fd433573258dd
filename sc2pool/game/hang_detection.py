"""Decides how long to wait for a missing reply, and whom to blame.

    Sent ──── ½ limit ──── limit ─────────────── 3 × limit
              CPU time     has it grown?   yes ┄┄► hung after all
              is read                      no  ┄┄► hung.
    A process that waits for a processor is starved, not hung: its limit is extended while it waits.
    In real time a game that sleeps through `SILENCE_S` has ended without a report (`silent`).

So a late game is slow, starved, silent or hung. The worker applies these rules to each burst of
requests (`HangDetector`). The supervisor's deadline for a step and the watchdog's samples use the
same figures. A game that answers within half of the limit causes no work: its CPU time is not read.

In lock-step no game of a match answers before both players have requested their step. So if one
game hangs, both seem to hang. If only one game has answered, the other game is to blame. If neither
has answered, the operating system's view of both processes decides: the game with the graver sign
is to blame. The signs, the gravest first: the process has ended; it is stopped; it does not read
its requests; it computes; it stands still. If no sign distinguishes the games, both are to blame.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sc2pool.deadline import Deadline

SLOW_FACTOR: Final = 3.0
"""A slow game that still computes may take this many times the limit of a step."""
IDLE_CPU_SHARE: Final = 0.01
"""Below this many CPU seconds per second a process counts as idle; waiting threads use less."""
STARVED_SHARE: Final = 0.5
"""A process counts as starved if it waits for a processor for at least this share of the time. A
hung process does not wait for a processor."""
STALL_S: Final = 1.0
"""If a timer is this late, this process itself was stopped (Ctrl-Z, a closed lid) or busy."""
_MOST_EXTENSIONS: Final = 20
"""A starved game's limit is extended at most this many times, each time by half of the limit."""
SILENCE_S: Final = 1.0
"""How long, in seconds, a game in real time may sleep and leave an observation unanswered. A
running game uses CPU time in each of its loops, 22 times a second."""


class Activity(NamedTuple):
    """The activity of a process since its start."""

    cpu_s: float
    """The CPU time that the process has used."""
    waited_s: float
    """Time for which the process was ready to run and waited for a processor; 0 if unknown. The
    system adds a wait to this time only after the wait."""
    is_ready: bool = False
    """True if the process ran, or waited for a processor, at the instant of the reading."""


class Doing(NamedTuple):
    """A process's activity between two readings, as shares of the time."""

    cpu_share: float
    waited_share: float

    @property
    def is_idle(self) -> bool:
        """True if the process neither ran nor waited for a processor."""
        return self.cpu_share < IDLE_CPU_SHARE and self.waited_share < IDLE_CPU_SHARE

    @property
    def is_starved(self) -> bool:
        """True if the process spent much of the time waiting for a processor."""
        return self.waited_share >= STARVED_SHARE


def doing(before: Sequence[Activity], after: Sequence[Activity], lasted_s: float) -> Doing:
    """Some processes' activity between two readings: the sum of CPU times, and the longest wait."""
    lasted_s = max(lasted_s, 1e-9)
    pairs = list(zip(before, after, strict=True))
    return Doing(
        sum(now.cpu_s - then.cpu_s for then, now in pairs) / lasted_s,
        max(_waited_share(then, now, lasted_s) for then, now in pairs),
    )


def _waited_share(then: Activity, now: Activity, lasted_s: float) -> float:
    """The share of the time for which a process waited for a processor."""
    idle = now.cpu_s - then.cpu_s < IDLE_CPU_SHARE * lasted_s
    if idle and then.is_ready and now.is_ready:
        return 1.0  # the process's wait has not ended, so `waited_s` lacks it
    return (now.waited_s - then.waited_s) / lasted_s


def unless_stalled(deadline: Deadline, grace_s: float) -> Deadline:
    """Return the deadline, or a later one if this process did not run when the deadline passed.

    The awaited process may have been stopped as well, or may have got its request only now.
    """
    if time.monotonic() - deadline.instant_s > STALL_S:
        return Deadline.after(grace_s)
    return deadline


class HangDetector:
    """Sets the deadlines for each answer: a first deadline, and extensions of it.

    Args:
        activity: A function that reads the activity of each game on which an answer depends.
        is_asleep: A function that returns True if the game has read all requests and no signal has
            stopped it. Called only to distinguish a silent game from a hung one.
        warn: A function for a sentence about the machine, called if the game is starved.
    """

    def __init__(
        self,
        activity: Callable[[], Sequence[Activity]],
        is_asleep: Callable[[], bool] = lambda: False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._activity = activity
        self._is_asleep = is_asleep
        self._warn = warn
        self._limit_s = math.inf
        self._may_fall_silent = False
        self._waits: Iterator[float] | None = None
        """The waits after the first deadline; None until the first deadline has passed."""
        self.deadline = Deadline(math.inf)
        self.silent = False
        """True if the newest wait ended because the game has ended without a report."""

    def begin(self, limit_s: float, *, may_fall_silent: bool = False) -> Deadline:
        """The first deadline for the next answer. An idle game counts as hung after `limit_s`.

        `may_fall_silent` is for observations in real time, which any running game sends at once.
        """
        self.silent = False
        self._limit_s = limit_s
        self._may_fall_silent = may_fall_silent and limit_s / 2 > SILENCE_S
        self._waits = None
        first_s = SILENCE_S / 2 if self._may_fall_silent else limit_s / 2
        self.deadline = Deadline.after(first_s)
        return self.deadline

    def extend(self) -> Deadline | None:
        """The next deadline; None if the game is hung or has fallen `silent`."""
        if self._waits is None:
            self._waits = self._further_waits()
        wait_s = next(self._waits, None)
        if wait_s is None:
            return None
        self.deadline = Deadline.after(wait_s)
        return self.deadline

    def _further_waits(self) -> Iterator[float]:
        """The waits after the first deadline; after the last wait the game is given up."""
        limit_s, half_s = self._limit_s, self._limit_s / 2
        if self._may_fall_silent:
            noted, noted_at_s = self._activity(), time.monotonic()
            yield SILENCE_S
            now = doing(noted, self._activity(), time.monotonic() - noted_at_s)
            if now.is_idle and self._is_asleep():
                self.silent = True
                return
            yield half_s
        noted, noted_at_s = self._activity(), time.monotonic()
        yield half_s
        was_extended = False
        for _ in range(_MOST_EXTENSIONS):
            now = doing(noted, self._activity(), time.monotonic() - noted_at_s)
            noted, noted_at_s = self._activity(), time.monotonic()
            if now.is_starved:
                self._warn(
                    "the machine is too busy: a game waits for a processor "
                    f"{min(now.waited_share, 1.0):.0%} of the time, so its limits are extended"
                )
                yield half_s
            elif now.cpu_share >= IDLE_CPU_SHARE and not was_extended:
                was_extended = True
                yield (SLOW_FACTOR - 1) * limit_s
            else:
                return


BUSY_CPU_SHARE: Final = 0.5
"""A process counts as computing if it uses at least this many CPU seconds per second. A game that
waits for the other player uses less CPU time."""


class MatchSide(StrEnum):
    """The two games of a match."""

    HOST = "host"
    """The side whose game creates the match, and whose player is player 1."""
    GUEST = "guest"


@dataclass(frozen=True)
class SideEvidence:
    """The operating system's facts about a game whose reply was awaited."""

    answered: bool = False
    """True if all replies of the game have come."""
    exited: bool = False
    stopped: bool = False
    """True if a signal has stopped one of the game's processes."""
    unread: bool = False
    """True if the socket is known to hold requests that the game has not read."""
    cpu_share: float = 0.0
    """CPU seconds per second that the game used at the end of the wait."""


_SIGNS: Sequence[tuple[str, Callable[[SideEvidence], bool]]] = (
    ("its process has ended", lambda seen: seen.exited),
    ("it is stopped by a signal", lambda seen: seen.stopped),
    ("it does not read its requests", lambda seen: seen.unread),
    ("it computes, and the other side waits", lambda seen: seen.cpu_share >= BUSY_CPU_SHARE),
    ("it uses no CPU time, the other side does", lambda seen: seen.cpu_share < IDLE_CPU_SHARE),
)
"""The signs of a game that hangs, the gravest first."""


def judge(evidence: Mapping[MatchSide, SideEvidence]) -> tuple[tuple[MatchSide, ...], str]:
    """The side to blame for a missing reply (both sides if no sign distinguishes them), and why."""
    owing = tuple(side for side, seen in evidence.items() if not seen.answered)
    if len(owing) == 1:
        return owing, "the other side has answered"
    for why, shows in _SIGNS:
        showing = tuple(side for side in owing if shows(evidence[side]))
        if len(showing) == 1:
            return showing, why
    return owing, "the signs do not show which side waits for the other"
