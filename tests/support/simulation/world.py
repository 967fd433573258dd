"""A simulated machine with a clock, descriptors, the next events, and faults.

Time passes only while the trainer waits, and only as far as the wait needs. Each request of the
pool to the operating system is a *point* at which a worker may die, an interrupt may come, and so
on. If no event can come any more, a wait without a time limit is a violation. A call that makes far
more requests than any call needs is also a violation.
"""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sc2pool.errors import FaultKind
from sc2pool.pool.watchdog import Verdict
from sc2pool.processes import spawn
from tests.support.simulation.schedule import CALLS, Event, Schedule

if TYPE_CHECKING:
    from tests.support.simulation.system import Process
    from tests.support.simulation.worker import Worker

FOR_EVER_S = 3000.0
"""From 50 minutes on, a wait counts as unlimited, because the pool's longest wait is an hour."""
POINTS_PER_CALL = 20_000
FIRST_DESCRIPTOR = 3
DO = spawn._do.__code__


class Violation(Exception):
    """The pool has broken one of its rules."""


class World:
    """One machine with one trainer.

    Attributes:
        now_s: The time that `time.monotonic` returns.
        workers: The hosted instances of all workers, by number.
        processes: The processes of all workers that were started.
        calling: True while the trainer is in a call of the pool.
        harm: The number of events so far that may end an instance.
        interrupts: The number of interrupts so far.
        violation: The first violation; None if there is none.
        over: True if the schedule has been played, after which no more faults happen.
        verdicts: The verdicts of the watchdog that were not fetched yet.
        next_wake_s: The next time at which the pool starts an instance, or a deadline ends.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.now_s = 1000.0
        self.events = deque(schedule.events)
        self.workers: dict[int, Worker] = {}
        self.processes: list[Process] = []
        self.calling = False
        self.harm = 0
        self.raised = 0
        self.refused = 0
        self.interrupts = 0
        self.violation: Violation | None = None
        self.over = False
        self.verdicts: list[Verdict] = []
        self.on_verdict: Any = lambda: None
        self.next_wake_s: Callable[[], float] = lambda: math.inf
        self.descriptors: dict[int, Any] = {}
        self._points = 0
        self._armed: list[tuple[int, Event]] = []
        self._refusals: list[list[Any]] = []
        self._turn = 0

    def monotonic(self) -> float:
        """Read a clock that never shows the same time twice."""
        self.now_s += 1e-7
        return self.now_s

    def broken(self, what: str) -> Violation:
        """Keep the first violation, in case the pool swallows the exception."""
        if self.violation is None:
            self.violation = Violation(what)
        return self.violation

    # Descriptors.

    def open(self, what: Any) -> int:
        """The number of a new descriptor: the lowest free one, as in the real system."""
        if self._refusals:
            self.refuse("descriptor")
        number = FIRST_DESCRIPTOR
        while number in self.descriptors:
            number += 1
        self.descriptors[number] = what
        return number

    def close(self, number: int) -> None:
        if self.descriptors.pop(number, None) is None and not self.over:
            raise self.broken(f"descriptor {number} is closed twice")

    @property
    def left(self) -> list[str]:
        """The descriptors and processes that the pool has not closed or ended."""
        descriptors = [
            f"{type(what).__name__} {number}" for number, what in self.descriptors.items()
        ]
        workers = [f"worker {one.pid}" for one in self.processes if not one.reaped]
        return descriptors + workers

    # Faults.

    def refuse(self, what: str) -> None:
        """Raise OSError if the schedule says that the system refuses this request now."""
        for refusal in () if self.over else self._refusals:
            if refusal[0] == what:
                refusal[2] -= 1
                if refusal[2] == 0:
                    self._refusals.remove(refusal)
                self.harm += 1
                self.refused += 1
                raise OSError(refusal[1], os.strerror(refusal[1]))

    def begin_call(self) -> None:
        self.calling = True
        self._points = 0

    def end_call(self) -> None:
        self.calling = False

    def point(self) -> None:
        """The pool makes a request to the system, at which an event may happen."""
        self._points += 1
        if self._armed and not self.over:
            self._strike()
        elif self._points > POINTS_PER_CALL and not self.over:
            raise self.broken("the call does not end")

    def _strike(self) -> None:
        """Carry out the events that were due at this point."""
        due = []
        for place, (points, event) in enumerate(self._armed):
            self._armed[place] = (points - 1, event)
            if points <= 1:
                due.append(event)
        self._armed = [one for one in self._armed if one[0] > 0]
        for event in due:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Carry out this event."""
        getattr(self, f"_on_{event[0]}")(*event[1:])

    def advance(self, deadline_s: float) -> bool:
        """The trainer waits: carry out the next event, or let time pass.

        Returns:
            False if the time of the wait is over.
        """
        self.point()
        events = self.events
        if events and events[0][0] not in CALLS:
            self.apply(events.popleft())
        elif not self._act_in_turn():
            if deadline_s - self.now_s >= FOR_EVER_S:
                raise self.broken("the trainer waits for ever")
            self.now_s = deadline_s
        return self.now_s < deadline_s

    def _act_in_turn(self) -> bool:
        workers = [one for one in self.workers.values() if one.alive and one.can_act]
        if not workers:
            return False
        self._turn += 1
        workers[self._turn % len(workers)].act("plain")
        return True

    def living(self, rank: int) -> Worker | None:
        """The living worker of this rank; ranks beyond the last one count again from the first."""
        workers = [one for one in self.workers.values() if one.alive]
        return workers[rank % len(workers)] if workers else None

    # The events.

    def _on_act(self, rank: int, how: str) -> None:
        able = [one for one in self.workers.values() if one.alive and one.can_act]
        if able:
            able[rank % len(able)].act(how)

    def _on_burst(self, events: int) -> None:
        for _ in range(events):
            if self.events and self.events[0][0] not in CALLS:
                self.apply(self.events.popleft())

    def _on_sleep(self, seconds: float) -> None:
        self.harm += seconds > 1.0
        self.now_s += seconds

    def _on_die(self, rank: int) -> None:
        worker = self.living(rank)
        if worker is not None:
            self.harm += len(worker.process.hosted)
            worker.process.die()

    def _on_fault(self, rank: int, kind: str) -> None:
        worker = self.living(rank)
        if worker is not None:
            self.harm += 1
            worker.report(FaultKind(kind))

    def _on_raise(self, rank: int) -> None:
        worker = self.living(rank)
        if worker is not None:
            self.raised += 1
            worker.user_code_raises()

    def _on_hang(self, rank: int) -> None:
        worker = self.living(rank)
        if worker is not None:
            self.harm += len(worker.process.hosted)
            worker.process.hung = True

    def _on_verdict(self, rank: int, kind: str) -> None:
        """The watchdog gives a verdict on a worker; the worker may have ended already."""
        numbers = list(self.workers)
        if numbers:
            self.harm += 1
            fault = None if kind == "soft" else FaultKind(kind)
            self.verdicts.append(Verdict(numbers[-1 - rank % len(numbers)], fault, kind))
            self.on_verdict()

    def _on_refuse(self, what: str, number: int, times: int) -> None:
        self._refusals.append([what, number, times])

    def _on_at(self, points: int, event: Event) -> None:
        self._armed.append((points, event))

    def _on_line(self, lines: int) -> None:
        """Does nothing, because interrupts at lines are set before a call; see `tracing`."""

    def _on_interrupt(self) -> None:
        if not self.calling:
            return
        if uninterruptible():
            self._armed.append((1, ("interrupt",)))
            return
        self.interrupts += 1
        raise KeyboardInterrupt


def uninterruptible() -> bool:
    """True in a thread to which the trainer gave a call; no interrupt reaches that thread."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_call":
        if frame.f_code is DO:
            return True
        frame = frame.f_back
    return False
