"""A seat is a place in the pool that always has a live instance: one for each env, one for each
spare.

Instances come and go, and change seats; what belongs to the env (its attributes, its history of
faults) stays on the seat. Rule: `seat.instance.seat is seat`, always.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sc2pool.errors import Fault
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.states import State
from sc2pool.tasks.player import Episode

CAUSES_KEPT = 3
"""So many faults of a seat are told where it is given up."""


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
        instance: who sits here now.
        episode: the episode its instance is to be brought to; None while one is played.
        source: the instance whose slot holds the newest observation; it may be gone already.
            None where there is no whole one.
        answered: the reply to the newest action is there, in `source`.
        fault: the first fault that no transition has told of yet.
        down_since_s: when the instance died whose successor has not been ready yet.
        waits: a game of it that would run by itself is held at its first observation.
        held: it is paused, so that no episode is begun where none is played yet.
        attributes: what `set_attr` set.
        recycles_s: monotonic times of its recycles.
        causes: its newest faults.
    """

    index: int
    is_spare: bool
    spec: bytes
    instance: Instance
    episode: Episode | None = None
    source: Instance | None = None
    answered: bool = False
    fault: FaultReport | None = None
    down_since_s: float | None = None
    waits: bool = False
    held: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    recycles_s: list[float] = field(default_factory=list)
    causes: deque[Fault] = field(default_factory=lambda: deque(maxlen=CAUSES_KEPT))

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"spare {self.index}" if self.is_spare else f"env {self.index}"

    @property
    def ready(self) -> bool:
        """Whether its instance holds the first observation of the seat's episode."""
        return self.instance.state is State.READY

    @property
    def arrived(self) -> bool:
        """Whether that observation is there: its instance is ready, or held at it."""
        return self.ready or self.instance.held

    @property
    def on_its_way(self) -> bool:
        """Whether at most a reset or a pause lies between its instance and the seat's episode."""
        return self.instance.state in (State.RESETTING, State.READY, State.PAUSED)

    def take(self, instance: Instance) -> None:
        """Seat an instance here."""
        self.instance = instance
        instance.seat = self


def exchange(seat: Seat, spare: Seat) -> None:
    """The spare's instance and its episode go to the env's seat; the env's goes to the spare's."""
    ours, theirs = seat.instance, spare.instance
    seat.take(theirs)
    spare.take(ours)
    seat.episode, spare.episode = spare.episode, None
    seat.source = theirs
    spare.source = None
    seat.down_since_s, spare.down_since_s = spare.down_since_s, seat.down_since_s
