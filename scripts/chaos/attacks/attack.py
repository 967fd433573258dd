"""What an attack is: data, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from chaos.arena import Arena, May

Do = Callable[[Arena, Random], None]
SOON_S = (0.0001, 0.3)
"""Bounds of the delay after which an attack strikes: within a step, or some steps later."""


@dataclass(frozen=True)
class Attack:
    """A way to do harm.

    Attributes:
        kind: for counting.
        do: does it, or arranges that it happens soon.
        may: what is allowed to follow.
        needs: what must be there: "games", "guests" (matches), "pending" (an adapter that can be
            attacked between sending and receiving), "mount" (a file system of the run's own),
            "pids" (a control group of the run's own), "local" (workers are the trainer's own
            children), "nodes" (a Ray cluster), "clock" (a C compiler).
        weight: how often it is drawn; slow ones seldom.
    """

    kind: str
    do: Do
    may: May = May.TRUNCATION
    needs: frozenset[str] = frozenset()
    weight: float = 1.0


def needs(*what: str) -> frozenset[str]:
    """See `Attack.needs`."""
    return frozenset(what)


def soon(rng: Random) -> float:
    """A delay in seconds; small ones are as frequent as large ones."""
    least, most = SOON_S
    return float(least * (most / least) ** rng.random())
