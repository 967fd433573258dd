"""A schedule: the arguments of a pool, the calls of its trainer, and the events between them.

An example is `Schedule(n=1, events=(("reset",), ("die", 0), ("step",)))`.

Calls and other events are in one list. A trainer's call begins when the call before it has
returned. The events between two calls happen while the first call waits; events that are left when
the first call returns happen before the second call. After the last event, the workers do their
work one after the other. Every event has a meaning at every place (an event names a worker by its
rank among the living workers), so any event can be left out to make a schedule shorter.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

Event = tuple[Any, ...]

_CALLS = """
    reset reset reset send send recv recv recv begin wait pause resume ask seed set_attr look close
""".split()
CALLS = frozenset({"step", *_CALLS})
"""The names of the events that are calls of the trainer."""

HOWS = ("plain", "info", "late", "over", "truncated", "told", "refused", "game", "stale")
"""The ways in which a worker can act; see `worker`."""
FAULTS = ("bad-reply", "game-exited", "launch-failed", "connection-lost")
VERDICTS = ("stopped", "memory", "hung", "soft")
REFUSALS = ("process", "descriptor", "folder", "memory", "epoll")
ERRNOS = (errno.EAGAIN, errno.EMFILE, errno.ENOENT, errno.ENOSPC)
SLEEPS_S = (0.03, 0.7, 12.0, 40.0, 100.0, 400.0)


@dataclass(frozen=True)
class Schedule:
    """The settings and events of a simulation.

    Attributes:
        n: The number of envs.
        spares: The number of spares; 0 for envs that a user wrote.
        one_book: True if the pool numbers all envs' episodes (as it does for tasks).
        autoreset: True if an env whose episode is over begins the next one by itself.
        realtime: True if the games run without waiting for actions.
        busy: The pool's `max_concurrency`.
        each: The number of instances that may live in one worker.
        launches: The number of games that may launch at one time.
        pickled: True if observations and actions lack a fixed layout.
        seeded: True if the episodes' seeds follow from a seed of the pool.
        recycle: The number of episodes after which an instance is replaced.
        patience: The pool accepts this many failures of one env, and `n` times as many of all envs.
        disk: True if fault reports can be written.
        events: The events, as the module's docstring describes them.
    """

    n: int = 1
    spares: int = 0
    one_book: bool = True
    autoreset: bool = True
    realtime: bool = False
    busy: int | None = None
    each: int = 1
    launches: int = 2
    pickled: bool = False
    seeded: bool = False
    recycle: int | None = None
    patience: int = 5
    disk: bool = False
    events: tuple[Event, ...] = ()

    def __repr__(self) -> str:
        """The settings that differ from their defaults."""
        said = (
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        )
        return f"Schedule({', '.join(said)})"


def draw(seed: int, index: int) -> Schedule:
    """Schedule number `index` of a run."""
    chance = random.Random((seed << 40) + index)
    one_book = chance.random() < 0.75
    n = chance.choice((1, 1, 2, 2, 3))
    realtime = one_book and chance.random() < 0.2
    harm = chance.choice((0.0, 0.2, 0.2, 0.4))
    traced = chance.random() < 0.1
    events: list[Event] = []
    if chance.random() < 0.25:  # events during the pool's construction
        events += [("line", chance.randrange(900))] * traced
        events += [
            harmful(chance) if chance.random() < harm else progress(chance) for _ in range(3)
        ]
    if chance.random() < 0.9:
        events.append(("reset",))
    for _ in range(chance.randint(2, 24)):
        dice = chance.random()
        if dice < 0.4:
            if traced and chance.random() < 0.3:
                events.append(("line", chance.randrange(chance.choice((60, 900)))))
            events.append(a_call(chance, n))
        else:
            events.append(harmful(chance) if dice >= 1.0 - harm else progress(chance))
    return Schedule(
        n=n,
        spares=chance.choice((0, 0, 1, 2)) if one_book else 0,
        one_book=one_book,
        autoreset=chance.random() < 0.8,
        realtime=realtime,
        busy=None if one_book else chance.choice((None, 1)),
        each=chance.choice((1, 1, 2, 3)),
        launches=chance.choice((1, 2)),
        pickled=chance.random() < 0.15,
        seeded=chance.random() < 0.4,
        recycle=chance.choice((None, None, 1, 2)),
        patience=chance.choice((1, 2, 5, 5)),
        disk=chance.random() < 0.1,
        events=tuple(events),
    )


def a_call(chance: random.Random, n: int) -> Event:
    """A random call of the trainer."""
    if chance.random() < 0.55:
        return ("step",)
    name = chance.choice(_CALLS)
    if name == "close" and chance.random() < 0.9:
        return ("look",)
    return (name, *_ARGUMENTS[name](chance, n)) if name in _ARGUMENTS else (name,)


def some(chance: random.Random, n: int) -> tuple[int, ...] | None:
    """Draw some envs; None means all envs."""
    return tuple(env for env in range(n) if chance.random() < 0.5) or None


_LIMITS_S = (None, None, 0.0, 0.5, 20.0)
_ARGUMENTS: dict[str, Callable[[random.Random, int], tuple[Any, ...]]] = {
    "reset": lambda chance, _: (chance.choice(("", "", "marked", "odd")),),
    "recv": lambda chance, _: (chance.choice((None, 0, 1, 2)), chance.choice(_LIMITS_S)),
    "wait": lambda chance, _: (chance.choice(_LIMITS_S),),
    "ask": lambda chance, n: (
        some(chance, n),
        chance.choice(_LIMITS_S),
        chance.random() < 0.5,
    ),
    **dict.fromkeys(
        ("send", "begin", "pause", "resume", "set_attr"), lambda chance, n: (some(chance, n),)
    ),
}
"""For each call that has arguments, a function that draws them."""


def progress(chance: random.Random) -> Event:
    """A random event without harm, as in a pool that works."""
    dice = chance.random()
    if dice < 0.8:
        return ("act", chance.randrange(4), chance.choice(HOWS))
    if dice < 0.9:
        return ("burst", chance.randint(2, 5))
    return ("sleep", chance.choice(SLEEPS_S[:2]))


def harmful(chance: random.Random) -> Event:
    """A random fault or refusal, sometimes at a point within a call instead of in its wait."""
    name = chance.choice(_HARMFUL)
    event = (name, *_DETAILS[name](chance)) if name in _DETAILS else (name, chance.randrange(4))
    return ("at", chance.randint(1, 12), event) if chance.random() < 0.3 else event


_HARMFUL = (
    "die die die interrupt interrupt fault fault verdict hang sleep refuse refuse raise".split()
)
_DETAILS: dict[str, Callable[[random.Random], tuple[Any, ...]]] = {
    "interrupt": lambda _: (),
    "fault": lambda chance: (chance.randrange(4), chance.choice(FAULTS)),
    "verdict": lambda chance: (chance.randrange(4), chance.choice(VERDICTS)),
    "sleep": lambda chance: (chance.choice(SLEEPS_S),),
    "refuse": lambda chance: (
        chance.choice(REFUSALS),
        chance.choice(ERRNOS),
        chance.choice((1, 1, 2, 8)),
    ),
}
"""Functions that draw the arguments of harmful events; other events have only a worker's rank."""
