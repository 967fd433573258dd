"""A seat is a place in the pool that always has an instance: one for each env and each spare.

Instances come and go, and change seats; what belongs to the env (its attributes, its history of
faults) stays on the seat. Rule: an instance is on one seat at most, but for the moment of an
`exchange`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sc2pool.errors import Fault
from sc2pool.pool.instances.instance import Instance
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
        spec: the pickled player that sits here.
        instance: the instance that sits here now.
        episode: the episode its instance is to be brought to; None while one is played.
        fault: the first fault that the trainer has not seen yet.
        down_since_s: when the instance died whose successor has not been ready yet.
        hold: a game that would run by itself is to be stopped at its first observation.
        paused: the trainer has paused it: no episode begins if none is played yet.
        attributes: what `set_attr` set, by row of the env: the pickled value of each name.
        recycles_s: monotonic times of its recycles.
        causes: its newest faults.
    """

    index: int
    is_spare: bool
    spec: bytes
    instance: Instance
    episode: Episode | None = None
    fault: FaultReport | None = None
    down_since_s: float | None = None
    hold: bool = False
    paused: bool = False
    attributes: dict[int, dict[str, bytes]] = field(default_factory=dict)
    recycles_s: list[float] = field(default_factory=list)
    causes: deque[Fault] = field(default_factory=lambda: deque(maxlen=CAUSES_KEPT))

    def vacate(self) -> None:
        """Forget the episode and all that belonged to the instance that sits here."""
        self.episode = self.fault = self.down_since_s = None
        self.hold = self.paused = False

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"spare {self.index}" if self.is_spare else f"env {self.index}"

    @property
    def arrived(self) -> bool:
        """Whether the first observation of its episode is there."""
        return self.instance.state in (State.READY, State.HELD)

    @property
    def arrives_soon(self) -> bool:
        """Whether at most a reset or a pause lies between its instance and that observation."""
        return self.instance.state in _SOON


def exchange(seat: Seat, spare: Seat) -> None:
    """The spare's instance and its episode go to the env's seat; the env's goes to the spare's."""
    seat.instance, spare.instance = spare.instance, seat.instance
    seat.episode, spare.episode = spare.episode, None
    seat.down_since_s, spare.down_since_s = spare.down_since_s, seat.down_since_s
