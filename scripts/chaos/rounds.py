"""Draws rounds from a seed, and finds the shortest part of a round that fails.

A round is an adapter with attacks (strikes) on it, as plain data; all functions here are pure. Each
strike has its own seed, so if some strikes are left out, the other strikes draw the same numbers.

Processes are not deterministic, so a part that fails only sometimes may pass once; `shrink`
therefore tries each part more than once. The part that `shrink` returns fails, but a shorter part
that fails may exist.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

MEAN_STRIKES = 16
STEPS_PER_STRIKE = 4
MOST_SPARES = 3


@dataclass(frozen=True)
class Strike:
    """An attack at one place in a round.

    Attributes:
        attack: the attack's name in the table of attacks.
        step: the number of the step before which the attack comes.
        seed: the seed of the attack's own draws.
    """

    attack: str
    step: int
    seed: int


@dataclass(frozen=True)
class Round:
    """The plan for one pool, from its construction to its close."""

    adapter: str
    n: int
    spares: int
    steps: int
    strikes: tuple[Strike, ...]

    def as_dict(self) -> dict[str, Any]:
        """This round as plain data, which `of` reads."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Round:
        """The round from which `as_dict` made this data."""
        strikes = tuple(Strike(**strike) for strike in data["strikes"])
        return cls(**{**data, "strikes": strikes})

    def with_strikes(self, strikes: Sequence[Strike]) -> Round:
        """A copy of this round, with these strikes instead."""
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
    """Draw the round with this number from a seed.

    Args:
        seed: the seed of the run.
        number: the number of the round.
        n: the number of envs; an adapter with a single env ignores it.
        adapters: the possible attacks on each adapter.
        weights: the relative frequency of each attack.
        mean_strikes: the approximate mean number of attacks in a round.
    """
    rng = random.Random(f"{seed} {number}")
    # After each adapter has played once, a new order of the adapters is drawn.
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


T = TypeVar("T")


def shrink(whole: Sequence[T], fails: Callable[[Sequence[T]], bool], repeat: int = 1) -> list[T]:
    """A part of `whole` that fails, and that no longer fails if any single element is left out.

    The elements keep their order.

    Args:
        whole: a list that fails.
        fails: tries a part once, and says whether it fails.
        repeat: the number of tries of a part, which fails if one of the tries fails.
    """

    def fails_once(part: Sequence[T]) -> bool:
        return any(fails(part) for _ in range(repeat))

    kept, parts = list(whole), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        rests = [
            [one for other in chunks[:i] + chunks[i + 1 :] for one in other]
            for i in range(len(chunks))
        ]
        # If there are only two chunks, `rests` has the same parts as `chunks`.
        candidates = chunks if len(chunks) == 2 else [*chunks, *rests]
        smaller = next((part for part in candidates if fails_once(part)), None)
        if smaller is not None:
            parts = 2 if len(smaller) <= size else max(2, parts - 1)
            kept = list(smaller)
        elif size == 1:
            break
        else:
            parts = min(len(kept), 2 * parts)
    return kept
