"""A seat is a place in the pool that always has an instance: one for each env and each spare.

Instances come and go, and change seats; what belongs to the env (its attributes, its history of
faults) stays on the seat. Rules: only this file changes a seat, in a method named after what has
happened; an instance is on one seat at most, but for the moment of an `exchange`.
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
"""How many recent faults the CrashLoopError lists."""

_SOON = frozenset({State.RESETTING, State.READY, State.HOLDING, State.HELD, State.RELEASING})


@dataclass
class FaultReport:
    """A fault, the instance it ended, and the monotonic time."""

    fault: Fault
    instance: int
    at_s: float
    folder: str | None
    """Its fault report on disk; None if it could not be written."""


@dataclass(eq=False)
class Seat:
    """One place in the pool.

    Attributes:
        index: 0 … n-1 are the envs', the rest are spares'.
        is_spare: whether it is a spare's.
        spec: of the players that sit here.
        instance: the instance that sits here now.
        episode: the episode its instance is to be brought to; None while one is played.
        fault: the first fault that the trainer has not seen yet.
        down_since_s: when the instance died whose successor has not been ready yet.
        hold: a game that would run by itself is to be stopped at its first observation.
        paused: the trainer has paused it: no episode begins if none is played yet.
        attributes: what `set_attr` set, by row of the env: the pickled value of each name.
        recycles_s: monotonic times of its recycles.
        causes: its newest faults.
        setups_failed: how many of its instances in a row could not begin an episode on their map.
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
    recycles_s: list[float] = field(default_factory=list)
    causes: deque[Fault] = field(default_factory=lambda: deque(maxlen=CAUSES_KEPT))
    setups_failed: int = 0

    def replaced(self, instance: Instance) -> None:
        """Another instance sits here; it goes on to the same episode."""
        self.instance = instance

    def begun_anew(self, instance: Instance) -> None:
        """Another instance sits here; the episode and all of the old one's is forgotten."""
        self.instance = instance
        self.episode = self.fault = self.down_since_s = None
        self.hold = self.paused = False

    def dealt(self, episode: Episode) -> None:
        """The seat is to be brought to this episode; a pause is over."""
        self.episode = episode
        self.paused = False

    def taken_back(self) -> None:
        """The episode that a spare held is dealt again."""
        self.episode = None

    def taken(self) -> FaultReport | None:
        """An env takes the episode that is ready here.

        Returns:
            The fault that the trainer has not seen yet, for its reset info; None if there is none.
        """
        self.instance.taken()
        self.episode = None
        return self.fault_told()

    def fault_told(self) -> FaultReport | None:
        """The trainer sees the first fault that it has not seen yet; None if there is none."""
        fault, self.fault = self.fault, None
        return fault

    def failed(self, report: FaultReport) -> None:
        """The instance that sits here has failed."""
        self.causes.append(report.fault)
        self.setups_failed += bool(report.fault.map_note)
        if self.fault is None:
            self.fault = report
        if self.down_since_s is None:
            self.down_since_s = report.at_s

    def recycled(self, now_s: float, window_s: float) -> None:
        """Its instance is about to be replaced; earlier times than the window's are forgotten."""
        self.recycles_s = [*recent(self.recycles_s, window_s, now_s), now_s]

    def arrived_at(self, now_s: float) -> float | None:
        """The first observation is there.

        Returns:
            How long the seat was without an instance after a fault, in seconds; None if it had one.
        """
        self.setups_failed = 0
        since_s, self.down_since_s = self.down_since_s, None
        return None if since_s is None else now_s - since_s

    def hold_asked(self) -> None:
        """Its next first observation is to wait for those of other seats."""
        self.hold = True

    def hold_over(self) -> None:
        """Its first observation waits for no other any more."""
        self.hold = False

    def pause_asked(self) -> None:
        """The trainer has paused it."""
        self.paused = True
        self.instance.pause_asked()

    def pause_over(self) -> bool:
        """The trainer has resumed it; returns whether it was paused."""
        was_paused, self.paused = self.paused, False
        return was_paused

    def attribute_set(self, row: int, name: str, value: bytes) -> None:
        """`set_attr` has set an attribute of a row of its env, to this pickled value."""
        of_row = self.attributes.get(row, {}) | {name: value}
        self.attributes = self.attributes | {row: of_row}

    def attributes_put_back(self, attributes: dict[int, dict[str, bytes]]) -> None:
        """`set_attr` has failed: they are what they were."""
        self.attributes = attributes

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"spare {self.index}" if self.is_spare else f"env {self.index}"

    @property
    def arrived(self) -> bool:
        """True if the first observation of its episode is there."""
        return self.instance.state in (State.READY, State.HELD)

    @property
    def arrives_soon(self) -> bool:
        """True if at most a reset or a pause lies between its instance and that observation."""
        return self.instance.state in _SOON


def exchange(seat: Seat, spare: Seat) -> None:
    """The spare's instance and its episode go to the env's seat; the env's goes to the spare's."""
    seat.instance, spare.instance = spare.instance, seat.instance
    seat.episode, spare.episode = spare.episode, None
    seat.down_since_s, spare.down_since_s = spare.down_since_s, seat.down_since_s
