"""An attack: its data, and the function that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from chaos.arena import Arena, May

Do = Callable[[Arena, Random], None]
SOON_S = (0.0001, 0.3)
"""The bounds of the delay before an attack acts: it acts in the next step, or some steps later."""


@dataclass(frozen=True)
class Attack:
    """A kind of harm, with the function that does it.

    Attributes:
        kind: the group in which the attack is counted.
        do: the function that carries out the attack, now or after a short delay.
        may: the consequences that are allowed.
        needs: the requirements: "games", "guests" (matches), "pending" (an adapter that can be
            attacked between sending and receiving), "mount" (the run has its own file system),
            "pids" (the run has its own control group), "local" (workers are children of the
            trainer), "nodes" (a Ray cluster), "clock" (a C compiler).
        weight: how often the attack is drawn, relative to other attacks; low for slow attacks.
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
    """A random delay in seconds, uniform on a logarithmic scale."""
    least, most = SOON_S
    return float(least * (most / least) ** rng.random())
