"""Draws rounds from a seed: each is an adapter and the attacks on it. Pure, and plain data.

Each strike has its own seed, so if some strikes are left out, the rest draw the same numbers.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

MEAN_STRIKES = 16
STEPS_PER_STRIKE = 4
MOST_SPARES = 3


@dataclass(frozen=True)
class Strike:
    """An attack at a place in the round.

    Attributes:
        attack: the attack's name in the table of attacks.
        step: the attack comes before this step.
        seed: the seed of the attack's own draws.
    """

    attack: str
    step: int
    seed: int


@dataclass(frozen=True)
class Round:
    """A pool from construction to close."""

    adapter: str
    n: int
    spares: int
    steps: int
    strikes: tuple[Strike, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `of`."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Round:
        """The round of which `as_dict` returned this data."""
        strikes = tuple(Strike(**strike) for strike in data["strikes"])
        return cls(**{**data, "strikes": strikes})

    def with_strikes(self, strikes: Sequence[Strike]) -> Round:
        """The same round with these strikes."""
        return replace(self, strikes=tuple(strikes))


def draw(
    seed: int,
    number: int,
    n: int,
    *,
    adapters: Mapping[str, Collection[str]],
    weights: Mapping[str, float],
    mean_strikes: float = MEAN_STRIKES,
) -> Round:
    """The `number`-th round of a seed.

    Args:
        seed: the seed of the run.
        number: the number of the round.
        n: the number of envs; an adapter with a single env ignores it.
        adapters: the possible attacks on each adapter.
        weights: the relative frequency of each attack.
        mean_strikes: about the mean number of attacks.
    """
    rng = random.Random(f"{seed} {number}")
    # All adapters in turn; after each turn a new order is drawn.
    order = random.Random(f"{seed} {number // len(adapters)}").sample(
        sorted(adapters), len(adapters)
    )
    adapter = order[number % len(adapters)]
    count = 1 + min(int(rng.expovariate(1.0 / mean_strikes)), int(4 * mean_strikes))
    steps = STEPS_PER_STRIKE * count + 8
    possible = sorted(adapters[adapter])
    chosen = rng.choices(possible, [weights[name] for name in possible], k=count)
    places = sorted(rng.randrange(steps) for _ in chosen)
    strikes = tuple(
        Strike(name, place, rng.randrange(2**32))
        for name, place in zip(chosen, places, strict=True)
    )
    return Round(adapter, n, rng.randint(0, MOST_SPARES), steps, strikes)
