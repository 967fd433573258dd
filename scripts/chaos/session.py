"""One session, interrupted again and again, as in a notebook that continues after Ctrl-C."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

from chaos.arena import Arena, May
from chaos.attacks.interrupts import in_call, in_computation
from chaos.play import all_exceptions
from tests.support.audit.faulty import Faulty

STEPS_BETWEEN = 3
SHOWN_EVERY_S = 30.0
CALLS = ("step", "step", "step", "reset", "pause", "method")


def interrupt_often(
    *, count: int, adapter: str, n: int, spares: int, seed: int, games: Faulty, reports: Path
) -> dict[str, Any]:
    """Interrupt one session at this many random instants."""
    arena = Arena(adapter, n, spares, games, reports)
    arena.may = May.TRUNCATION
    rng = Random(seed)
    shown = 0
    began_s = time.monotonic()
    with all_exceptions(arena.problems):
        try:
            arena.open()
            while arena.counts["interrupts"] < count:
                if rng.random() < 0.5:
                    in_call(arena, rng, rng.choice(CALLS))
                else:
                    in_computation(arena, rng)
                for _ in range(STEPS_BETWEEN):
                    arena.step()
                for problem in arena.problems[shown:]:
                    print(f"PROBLEM after {arena.counts['interrupts']}: {problem}", flush=True)
                shown = len(arena.problems)
                if time.monotonic() > began_s + SHOWN_EVERY_S:
                    began_s += SHOWN_EVERY_S
                    print(dict(arena.counts), flush=True)
        finally:
            arena.close()
    return {
        "transitions": arena.transitions,
        "counts": dict(arena.counts),
        "problems": arena.problems,
    }
