"""Every fault that was injected, every one the pool saw, every one the trainer was told of.

    injected ──┐
    events   ──┼─► reconcile: each instance once on each side, or a reason why not
    marks    ──┘

An instance dies once, so its number stands for its fault. A fault of an env's instance is told
once, in the info of a transition or of a reset; a spare's is told in the pool's own events only;
and where the successor fails as well before the trainer was told of the first fault, the first
one is told. Rules: no I/O, no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from audit.checker import Mark
from sc2pool.pool.report.stats import PoolEvent


@dataclass(frozen=True)
class Told:
    """A mark, and when and for which env the trainer got it."""

    env: int
    mark: Mark
    at_s: float


@dataclass
class Ledger:
    """What is known of each instance that was harmed or failed."""

    injected: dict[int, str] = field(default_factory=dict)
    events: dict[int, PoolEvent] = field(default_factory=dict)
    told: dict[int, Told] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _seen_until_s: float = 0.0

    def inject(self, instance: int, how: str) -> None:
        """This instance is about to be harmed."""
        self.injected[instance] = how

    def withdraw(self, instance: int) -> None:
        """It was not harmed after all."""
        del self.injected[instance]

    def take_marks(self, marks: Iterable[tuple[int, Mark]], at_s: float) -> None:
        """The trainer was told of these faults."""
        for env, mark in marks:
            if mark.instance in self.told:
                self.wrong.append(f"the fault of instance {mark.instance} is told twice")
            self.told[mark.instance] = Told(env, mark, at_s)

    def take_events(self, events: Iterable[PoolEvent]) -> None:
        """The newest events of the pool, in their order; those known already are passed over."""
        for event in events:
            if event.at_s <= self._seen_until_s:
                continue
            self._seen_until_s = event.at_s
            if event.event != "fault":
                continue
            if event.instance in self.events:
                self.wrong.append(f"instance {event.instance} has failed twice")
            # The end of a game's log may be in it, and a run has thousands of these.
            brief = event.detail.partition("\n")[0]
            self.events[event.instance] = replace(event, detail=brief)

    def unnoticed(self) -> set[int]:
        """Instances that were harmed and have not failed so far."""
        return self.injected.keys() - self.events.keys()

    def shadowed(self) -> set[int]:
        """Failed before the trainer was told of an earlier fault of the same env."""
        spans = [
            (self.events[number].seat, self.events[number].at_s, told.at_s)
            for number, told in self.told.items()
            if number in self.events
        ]
        return {
            number
            for number, event in self.events.items()
            if number not in self.told
            and any(
                seat == event.seat and since_s < event.at_s < until_s
                for seat, since_s, until_s in spans
            )
        }

    def of_spares(self) -> set[int]:
        """Failed while no env had them."""
        return {n for n, event in self.events.items() if event.seat.startswith("spare")}

    def untold(self) -> set[int]:
        """Failed, and the trainer should be told and has not been so far."""
        return self.events.keys() - self.told.keys() - self.of_spares() - self.shadowed()

    def settled(self) -> bool:
        """Whether every harm has been noticed, and every fault told."""
        return not self.unnoticed() and not self.untold()

    def reconcile(self) -> list[str]:
        """All that does not fit together."""
        found = list(self.wrong)
        for number in self.unnoticed():
            found.append(f"instance {number}: {self.injected[number]} went unnoticed")
        for number in self.events.keys() - self.injected.keys():
            event = self.events[number]
            about = f"{event.cause} while {event.phase}: {event.detail}"
            found.append(f"instance {number} failed, and nobody had harmed it: {about}")
        for number, told in self.told.items():
            event = self.events.get(number)
            given = (f"env {told.env}", told.mark.kind)
            if event is None:
                found.append(f"instance {number} is told to have failed, and has not")
            elif (event.seat, event.cause) != given:
                found.append(f"instance {number} is told as {given}, but it was {event}")
        for number in self.untold():
            found.append(f"the fault of instance {number} is not told: {self.events[number]}")
        return found

    def by(self, key: Literal["cause", "phase"]) -> dict[str, int]:
        """Count of faults by `cause` or `phase`."""
        return dict(Counter(getattr(event, key) for event in self.events.values()).most_common())
