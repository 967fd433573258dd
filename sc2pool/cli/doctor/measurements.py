"""What the probes measure: one small dataclass for each kind of figure, without an opinion.

Units are in the names. All of it is plain data, so that a report can be sent on as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Found:
    """The installation, and what led to it."""

    root: Path
    executable: Path
    base_build: int
    found_by: str


@dataclass(frozen=True)
class MapPlace:
    """One map."""

    path: Path | None
    """Where it is; None if it is not there."""
    belongs_to: Path
    """Where it should be."""
    tasks: tuple[str, ...]
    """The built-in tasks that are played on it."""


@dataclass(frozen=True)
class Package:
    """An installed Python package."""

    name: str
    version: str | None
    """None if it is not installed."""
    least: str
    """The oldest version that will do; empty if any will."""


@dataclass(frozen=True)
class PythonSetup:
    """The interpreter and the packages sc2pool needs."""

    version: tuple[int, int, int]
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Ports:
    """The ports games may have; one of them was leased and given back."""

    first: int
    last: int
    leased: int


@dataclass(frozen=True)
class Memory:
    """Main memory, within the limit of the container where there is one."""

    available_bytes: int
    total_bytes: int
    game_bytes: int | None = None
    """What one game took; None if none was measured."""


@dataclass(frozen=True)
class Space:
    """A file system."""

    place: Path
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Limit:
    """A limit of this process; None for unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class Cores:
    """CPU cores that this process may use, of those the machine has."""

    usable: int
    there: int


@dataclass(frozen=True)
class Version:
    """What the game says of itself, and the folder it was started from."""

    game_version: str
    told_build: int
    folder_build: int


@dataclass(frozen=True)
class Durations:
    """How long something took, several times."""

    n: int
    first_s: float
    p50_s: float
    p95_s: float
    longest_s: float

    @classmethod
    def of(cls, samples_s: Iterable[float]) -> Self:
        """The figures of some samples, at least one."""
        in_order = list(samples_s)
        ranked = sorted(in_order)

        def rank(share: float) -> float:
            return ranked[max(0, math.ceil(share * len(ranked)) - 1)]

        return cls(len(ranked), in_order[0], rank(0.5), rank(0.95), ranked[-1])


@dataclass(frozen=True)
class Growth:
    """A game's resident memory before and after some resets."""

    first_bytes: int
    last_bytes: int
    resets: int


@dataclass(frozen=True)
class Kill:
    """The end of a game that was killed."""

    took_s: float
    gone: bool


@dataclass(frozen=True)
class YesNo:
    """An answer to a check's question."""

    yes: bool


@dataclass(frozen=True)
class Markers:
    """Lines that tell that a game is ready, found in its output or not."""

    found: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Two runs of observations, held against each other."""

    compared: int
    """How many observations of each."""
    difference: str
    """The first one; empty if there is none."""


@dataclass(frozen=True)
class Variety:
    """How many different beginnings some episodes had."""

    episodes: int
    distinct: int


@dataclass(frozen=True)
class HardReset:
    """Restarts, and after how many of them the game asked for a new game; None if never."""

    restarts: int
    asked_after: int | None


@dataclass(frozen=True)
class EpisodeEnd:
    """How an episode ended."""

    game_loop: int
    further_observations: int | None
    """Needed until the player's result was there; None if it never came."""
    by_command: bool
    """Ended by a debug command, for it lasted too long."""


@dataclass(frozen=True)
class ProcessTest:
    """What came of asking the game to exit."""

    ended: bool
    took_s: float
    detail: str


@dataclass(frozen=True)
class Pace:
    """Game loops that were played in some time."""

    loops: int
    seconds: float

    @property
    def loops_per_s(self) -> float:
        """The rate."""
        return self.loops / self.seconds


@dataclass(frozen=True)
class AwaitedLoop:
    """An observation that was asked to wait for a loop."""

    now: int
    asked: int
    got: int
    took_s: float


@dataclass(frozen=True)
class Pause:
    """A game in real time that was stopped for a while and went on."""

    loop_before: int
    loop_at_once: int
    """In the first observation after it went on."""
    loop_after: int
    """In a later one."""
    stopped_s: float
    ran_s: float
    """Time between the first and the last observation in which the game was not stopped."""
    loops_per_s: float
    """Its pace when nobody stops it."""

    @property
    def made_up_share(self) -> float:
        """The share of the loops missed in the stop that were played after it."""
        beyond = self.loop_after - self.loop_before - self.loops_per_s * self.ran_s
        return beyond / (self.loops_per_s * self.stopped_s)
