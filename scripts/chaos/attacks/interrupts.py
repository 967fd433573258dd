"""A timer raises KeyboardInterrupt at random instants of every call of the env.

Most of a call's time is spent in waits. Some timers therefore count only the trainer's CPU time, to
interrupt the trainer while it computes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from types import FrameType

from chaos.arena import Arena
from chaos.attacks.attack import Attack

WITHIN_S = {"step": 0.02, "reset": 0.05, "pause": 0.01, "method": 0.01, "close": 0.1, "make": 4.0}
"""A guess of each call's duration in seconds, used until a duration has been measured."""
COMPUTES_FOR_S = 0.03
MOST_STEPS = 200


@contextmanager
def alarm(timer: int, delay_s: float) -> Iterator[None]:
    """Raise KeyboardInterrupt after `delay_s`, unless the block has ended before this time."""
    armed = [True]

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        if armed.pop():
            raise KeyboardInterrupt

    number = signal.SIGALRM if timer == signal.ITIMER_REAL else signal.SIGVTALRM
    signal.signal(number, interrupt)
    try:
        signal.setitimer(timer, max(delay_s, 1e-6))
        yield
    finally:
        armed.append(False)
        signal.setitimer(timer, 0.0)


def in_call(arena: Arena, rng: Random, name: str) -> None:
    """Interrupt one call of the env at a random instant of its usual duration."""
    delay_s = rng.uniform(0.0, arena.took_s.get(name, WITHIN_S[name]))

    def call() -> None:
        began_s = time.monotonic()
        with alarm(signal.ITIMER_REAL, delay_s):
            CALLS[name](arena)
        arena.took_s[name] = time.monotonic() - began_s

    arena.interrupt(rng, name, call)


def in_computation(arena: Arena, rng: Random) -> None:
    """Interrupt steps, resets, pauses and method calls while the trainer computes."""
    delay_s = rng.uniform(0.0, COMPUTES_FOR_S)

    def calls() -> None:
        with alarm(signal.ITIMER_VIRTUAL, delay_s):
            for _ in range(MOST_STEPS):
                rng.choice([Arena.step] * 3 + [Arena.reset, pause, method])(arena)

    arena.interrupt(rng, "computation", calls)


def pause(arena: Arena) -> None:
    adapter = arena.adapter
    if adapter is not None:
        arena.aside("pause", adapter.pause)
    if adapter is not None and adapter is arena.adapter:
        arena.aside("resume", adapter.resume)


def method(arena: Arena) -> None:
    if arena.adapter is not None:
        arena.aside("method", arena.adapter.method)


def in_close(arena: Arena, rng: Random) -> None:
    """Interrupt `close`, then close again and check that no process lives."""
    adapter = arena.adapter
    in_call(arena, rng, "close")
    if adapter is not None:
        adapter.env.close()
        arena.report(f"after close {process} lives" for process in arena.alive())


def in_construction(arena: Arena, rng: Random) -> None:
    """Close the env, interrupt the construction of a new env, and check that no process lives."""
    arena.close()
    in_call(arena, rng, "make")
    if arena.adapter is None:
        arena.report(f"after a construction {process} lives" for process in arena.alive())
    else:
        arena.reset()


CALLS: dict[str, Callable[[Arena], None]] = {
    "step": Arena.step,
    "reset": Arena.reset,
    "pause": pause,
    "method": method,
    "close": Arena.close,
    "make": Arena.construct,
}
ATTACKS = {
    **{
        f"interrupt: {name}": Attack("interrupt", partial(in_call, name=name))
        for name in ("step", "reset", "pause", "method")
    },
    "interrupt: close": Attack("interrupt", in_close, weight=0.2),
    "interrupt: construction": Attack("interrupt", in_construction, weight=0.2),
    "interrupt: computation": Attack("interrupt", in_computation, weight=2.0),
}
