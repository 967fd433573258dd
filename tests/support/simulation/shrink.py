"""Makes a failing schedule shorter: the same violation with fewer events and plainer settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

from tests.support.simulation.play import play
from tests.support.simulation.schedule import Event, Schedule
from tests.support.simulation.world import Violation


def kind(violation: Violation) -> str:
    """The words of a violation without its figures; violations of one cause have the same words."""
    return re.sub(r"^\w+ raises|[0-9].*", "", str(violation))[:60]


def shortest(schedule: Schedule, reports: Path) -> Schedule:
    """The shortest schedule that was found to fail in the same way as this one."""
    violation = play(schedule, reports)
    assert violation is not None, "the same schedule plays the same every time"
    name = kind(violation)

    def fails(shorter: Schedule) -> bool:
        other = play(shorter, reports)
        return other is not None and kind(other) == name

    return shrink(schedule, fails)


def failure(schedule: Schedule, reports: Path) -> str:
    """The violation of a failing schedule in words, and the schedule itself."""
    return f"{play(schedule, reports)}\n  {schedule!r}"


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """The shortest schedule that was found to fail.

    Args:
        schedule: A schedule that fails.
        fails: A function that returns True if another schedule fails in the same way.
    """
    while True:
        shorter = next(filter(fails, simpler(schedule)), None)
        if shorter is None:
            return schedule
        schedule = shorter


def simpler(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules that are each simpler than this schedule in one place, the simplest ones first."""
    events = schedule.events
    length = len(events)
    while length:
        for begin in range(0, len(events), length):
            yield replace(schedule, events=events[:begin] + events[begin + length :])
        length //= 2
    for one in fields(schedule):
        if one.name != "events" and getattr(schedule, one.name) != one.default:
            yield replace(schedule, **{one.name: one.default})
    if schedule.n > 2:
        yield replace(schedule, n=2)
    for place, event in enumerate(events):
        for plainer in simpler_events(event):
            yield replace(schedule, events=(*events[:place], plainer, *events[place + 1 :]))


def simpler_events(event: Event) -> Iterator[Event]:
    """Events that are simpler than this one."""
    name, *arguments = event
    if name == "at":
        yield arguments[1]
    if name in ("step", "reset") and arguments and arguments[0]:
        yield (name,)
    for place, value in enumerate(arguments):
        smaller: list[object] = []
        if isinstance(value, bool):
            smaller = [False] if value else []
        elif isinstance(value, int) and name != "refuse":
            smaller = sorted({0, value // 2, value - 1} & set(range(value)))
        elif isinstance(value, str) and name == "act" and value != "plain":
            smaller = ["plain"]
        for other in smaller:
            yield (name, *arguments[:place], other, *arguments[place + 1 :])
