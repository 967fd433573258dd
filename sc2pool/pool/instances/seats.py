"""A seat is a place in the pool that always has an instance: one for each env and each spare.

An instance may be replaced or change seats, but the state of the env (its attributes and its
history of faults) stays on the seat. Only this file changes a seat. The methods of a seat are named
after events. An instance is on one seat at most, except while an `exchange` runs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sc2pool.errors import Fault
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.restart import recent
from sc2pool.pool.instances.states import State
from sc2pool.tasks.player import Episode

CAUSES_KEPT = 3
"""How many recent faults a `CrashLoopError` lists."""

_SOON = frozenset({State.RESETTING, State.READY, State.HOLDING, State.HELD, State.RELEASING})


@dataclass
class FaultReport:
    """A fault, the number of the instance that it ended, and the fault's monotonic time."""

    fault: Fault
    instance: int
    at_s: float
    folder: str | None
    """The folder of the fault report on disk; None if the report could not be written."""


@dataclass(eq=False)
class Seat:
    """One place in the pool, for an env or a spare.

    Attributes:
        index: the number of the seat, 0 to n-1 for envs, n and above for spares.
        spec: the packed description of its players.
        episode: the episode that the instance prepares, or None while an env plays it.
        fault: the first fault that the trainer has not seen yet, or None.
        down_since_s: the time of the first fault since the seat was last ready, or None.
        hold: whether the next real-time game must be stopped at its first observation.
        paused: whether the trainer has paused the seat, so that no episode begins on it.
        attributes: the pickled values that `set_attr` has set, by the env's row and by name.
        failures_s: the monotonic times of its failures.
        setups_failed: how many instances in a row could not begin an episode.
    """

    index: int
    is_spare: bool
    spec: Any
    instance: Instance
    episode: Episode | None = None
    fault: FaultReport | None = None
    down_since_s: float | None = None
    hold: bool = False
    paused: bool = False
    attributes: dict[int, dict[str, bytes]] = field(default_factory=dict)
    failures_s: list[float] = field(default_factory=list)
    causes: deque[Fault] = field(default_factory=lambda: deque(maxlen=CAUSES_KEPT))
    setups_failed: int = 0

    def replaced(self, instance: Instance) -> None:
        """Seat a new instance for the same episode."""
        self.instance = instance

    def begun_anew(self, instance: Instance) -> None:
        """Seat a new instance; forget the episode, the fault and the pauses of the old one."""
        self.instance = instance
        self.episode = self.fault = self.down_since_s = None
        self.hold = self.paused = False

    def dealt(self, episode: Episode) -> None:
        """Record that this seat gets the episode, and end the seat's pause if it has one."""
        self.episode = episode
        self.paused = False

    def taken_back(self) -> None:
        """Forget the spare's episode, which goes back into the book of episodes."""
        self.episode = None

    def taken(self) -> FaultReport | None:
        """Record that an env takes the episode; return the fault to report in the reset info."""
        self.instance.taken()
        self.episode = None
        return self.fault_told()

    def fault_told(self) -> FaultReport | None:
        """Return the fault that the trainer has not seen yet, or None; the trainer now sees it."""
        fault, self.fault = self.fault, None
        return fault

    def failed(self, report: FaultReport) -> None:
        """Record that the seat's instance has failed."""
        self.causes.append(report.fault)
        self.setups_failed += bool(report.fault.map_note)
        if self.fault is None:
            self.fault = report
        if self.down_since_s is None:
            self.down_since_s = report.at_s

    def note_failure(self, now_s: float, window_s: float) -> None:
        """Record a failure at `now_s`, and forget failures that are older than the window."""
        self.failures_s = [*recent(self.failures_s, window_s, now_s), now_s]

    def arrived_at(self, now_s: float) -> float | None:
        """Record the first observation; return the seconds since a fault (None without a fault)."""
        self.setups_failed = 0
        since_s, self.down_since_s = self.down_since_s, None
        return None if since_s is None else now_s - since_s

    def hold_asked(self) -> None:
        """Hold the seat's next first observation until other seats have reached theirs."""
        self.hold = True

    def hold_over(self) -> None:
        self.hold = False

    def pause_asked(self) -> None:
        """Record that the trainer has paused the seat."""
        self.paused = True
        self.instance.pause_asked()

    def pause_over(self) -> bool:
        """Record that the trainer has resumed the seat; return True if it was paused."""
        was_paused, self.paused = self.paused, False
        return was_paused

    def attribute_set(self, row: int, name: str, value: bytes) -> None:
        """Store the pickled value of an attribute that `set_attr` set for a row of the env."""
        of_row = self.attributes.get(row, {}) | {name: value}
        self.attributes = self.attributes | {row: of_row}

    def attributes_put_back(self, attributes: dict[int, dict[str, bytes]]) -> None:
        """Restore the attributes after a `set_attr` that failed."""
        self.attributes = attributes

    @property
    def name(self) -> str:
        """The seat's name in messages."""
        return f"spare {self.index}" if self.is_spare else f"env {self.index}"

    @property
    def arrived(self) -> bool:
        """True if the first observation of the seat's episode has arrived."""
        return self.instance.state in (State.READY, State.HELD)

    @property
    def arrives_soon(self) -> bool:
        """True if the seat's instance is ready or must only finish a reset, a stop or a resume."""
        return self.instance.state in _SOON


def exchange(seat: Seat, spare: Seat) -> None:
    """Swap the instances of an env's seat and a spare's; the env gets the spare's episode."""
    seat.instance, spare.instance = spare.instance, seat.instance
    seat.episode, spare.episode = spare.episode, None
    seat.down_since_s, spare.down_since_s = spare.down_since_s, seat.down_since_s
