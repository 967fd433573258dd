"""Compares the faults that were injected, that the pool detected, and that the trainer got.

    injected ──┐
    events   ──┼─► reconcile: each instance once on each side, or a reason why not
    marks    ──┘

An instance dies once, so its number identifies its fault. A fault of an env's instance is reported
once, in the info of a transition or of a reset; a spare's fault is only in the pool's own events.
If an instance's successor fails before the trainer gets the instance's fault, only the instance's
fault is reported. The ledger does no I/O and reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sc2pool.pool.statistics import PoolEvent
from tests.support.audit.checker import Mark


@dataclass(frozen=True)
class Report:
    """A mark (the report of a fault), and the time and env at which the trainer got it."""

    env: int
    mark: Mark
    at_s: float


@dataclass
class Ledger:
    """The facts about each instance that was harmed or has failed."""

    injected: dict[int, str] = field(default_factory=dict)
    events: dict[int, PoolEvent] = field(default_factory=dict)
    reported: dict[int, Report] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _seen_until_s: float = 0.0

    def inject(self, instance: int, how: str) -> None:
        """Record that this instance is about to be harmed."""
        self.injected[instance] = how

    def take_marks(self, marks: Iterable[tuple[int, Mark]], at_s: float) -> None:
        """Record that the trainer got these faults."""
        for env, mark in marks:
            if mark.instance in self.reported:
                self.wrong.append(f"the fault of instance {mark.instance} is reported twice")
            self.reported[mark.instance] = Report(env, mark, at_s)

    def take_events(self, events: Iterable[PoolEvent]) -> None:
        """Record the pool's newest events in order; skip events that are already recorded."""
        for event in events:
            if event.at_s <= self._seen_until_s:
                continue
            self._seen_until_s = event.at_s
            if event.event != "fault":
                continue
            if event.instance in self.events:
                self.wrong.append(f"instance {event.instance} has failed twice")
            # Keep only the first line: a game's log may follow, and a run has thousands of events.
            brief = event.detail.partition("\n")[0]
            self.events[event.instance] = replace(event, detail=brief)

    def unnoticed(self) -> set[int]:
        """Instances that were harmed and have not failed so far."""
        return self.injected.keys() - self.events.keys()

    def shadowed(self) -> set[int]:
        """Instances that failed before the trainer got an earlier fault of the same env."""
        spans = [
            (self.events[number].seat, self.events[number].at_s, report.at_s)
            for number, report in self.reported.items()
            if number in self.events
        ]
        return {
            number
            for number, event in self.events.items()
            if number not in self.reported
            and any(
                seat == event.seat and since_s < event.at_s < until_s
                for seat, since_s, until_s in spans
            )
        }

    def of_spares(self) -> set[int]:
        """Instances that failed as spares."""
        return {n for n, event in self.events.items() if event.seat.startswith("spare")}

    def unreported(self) -> set[int]:
        """Failed instances whose fault the trainer has not got yet, but must get."""
        return self.events.keys() - self.reported.keys() - self.of_spares() - self.shadowed()

    def settled(self) -> bool:
        """True if every harm was detected and every fault reported."""
        return not self.unnoticed() and not self.unreported()

    def reconcile(self) -> list[str]:
        """All contradictions, for a run in which each harm is recorded and ends its instance."""
        found = []
        for number in self.unnoticed():
            found.append(f"instance {number}: {self.injected[number]} was not detected")
        for number in self.events.keys() - self.injected.keys():
            event = self.events[number]
            about = f"{event.cause} while {event.phase}: {event.detail}"
            found.append(f"instance {number} failed without being harmed: {about}")
        found += self.misreported()
        for number in self.unreported():
            found.append(f"the fault of instance {number} is not reported: {self.events[number]}")
        return found

    def misreported(self) -> list[str]:
        """Faults that the trainer got, but that differ from those in the pool's events."""
        found = list(self.wrong)
        for number, report in self.reported.items():
            event = self.events.get(number)
            given = (f"env {report.env}", report.mark.kind)
            if event is None:
                found.append(f"instance {number} is reported as failed, but did not fail")
            elif (event.seat, event.cause) != given:
                found.append(f"instance {number} is reported as {given}, but it was {event}")
        return found
