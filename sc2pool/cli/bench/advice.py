"""What the figures mean: which number of games looks best, and what limits it.

Rule: pure functions from figures to sentences; each sentence names the figures it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sc2pool.cli.bench.figures import Measured, Resets
from sc2pool.cli.bench.processes import GAME, TRAINER, WORKER

GOOD_ENOUGH = 0.95
"""Of the best rate: the smallest number of games that has it saves memory."""
CORES_FULL = 0.85
"""Of all cores' time; the rest goes to the system and to waiting."""
IN_STEP = 0.85
"""Of n times one game's rate: the games hardly wait for each other."""
DEAR_RESET_PERCENT = 10.0
MUCH_ELSE_CORES = 0.25
"""What other programs may take before it is worth a word."""


class Limit(StrEnum):
    """What keeps a pool from being faster."""

    MEMORY = "memory"
    CORES = "cores"
    GAME = "the game"
    BATCH = "the slowest of each batch"


def best(measured: Sequence[Measured]) -> Measured:
    """The smallest pool that is about as fast as the fastest."""
    fastest = max(one.steps_per_s for one in measured)
    return next(one for one in measured if one.steps_per_s >= GOOD_ENOUGH * fastest)


def limit_of(chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int) -> Limit:
    """What limits the chosen pool.

    Args:
        chosen: the best of `measured`.
        measured: the smallest pool first.
        cores: that may be used.
        free_bytes: memory that was free before any game was started.
    """
    if chosen.cores_busy + chosen.others_cores >= CORES_FULL * cores:
        return Limit.CORES
    if chosen is measured[-1] and 2 * chosen.n * chosen.env_bytes > free_bytes:
        return Limit.MEMORY
    first = measured[0]
    if chosen.steps_per_s / chosen.n >= IN_STEP * first.steps_per_s / first.n:
        return Limit.GAME
    return Limit.BATCH


def advice(
    measured: Sequence[Measured], resets: Sequence[Resets], cores: int, free_bytes: int
) -> list[str]:
    """Sentences for the user; arguments as in `limit_of`."""
    chosen = best(measured)
    limit = limit_of(chosen, measured, cores, free_bytes)
    said = [f"n={chosen.n} looks best: {chosen.steps_per_s:,.0f} env steps a second."]
    said += [_why(limit, chosen, measured, cores, free_bytes)]
    if chosen.others_cores >= MUCH_ELSE_CORES:
        said += [
            f"Other programs took {chosen.others_cores:.1f} cores meanwhile: measure again without "
            "them, for all of this may look different then."
        ]
    return said + [line for line in [_about_spares(resets, limit)] if line]


def _why(
    limit: Limit, chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int
) -> str:
    if limit is Limit.CORES:
        whole_us = chosen.cpu_us_per_step()
        share = {r: chosen.cpu_us_per_step(r) / whole_us for r in (GAME, WORKER, TRAINER)}
        return (
            f"The cores limit it: {chosen.cores_busy:.1f} of {cores} work for it. Of a step's CPU "
            f"time the game takes {share[GAME]:.0%}, the worker {share[WORKER]:.0%} and the "
            f"trainer {share[TRAINER]:.0%}. {_relief(share[GAME], share[WORKER])}"
        )
    if limit is Limit.MEMORY:
        fit = max(1, free_bytes // max(1, chosen.env_bytes))
        return (
            f"Memory limits it: a game and its worker take {chosen.env_bytes / 1e6:,.0f} MB, and "
            f"{free_bytes / 1e6:,.0f} MB were free, which is enough for about {fit}, spares "
            "included."
        )
    if limit is Limit.GAME:
        more = (
            f"Twice as many may be faster still: try --n {2 * chosen.n}."
            if chosen is measured[-1]
            else "More of them were hardly faster."
        )
        return (
            f"The game itself limits it: {chosen.n} games give {chosen.steps_per_s:,.0f} steps a "
            f"second, {chosen.steps_per_s / measured[0].steps_per_s * measured[0].n:.1f} times "
            f"one, and only {chosen.cores_busy:.1f} of {cores} cores are busy. {more}"
        )
    return (
        f"Each batch waits for its slowest game: {chosen.n} games give only "
        f"{chosen.steps_per_s / measured[0].steps_per_s * measured[0].n:.1f} times what one gives, "
        f"though only {chosen.cores_busy:.1f} of {cores} cores are busy. Stepping whoever is ready "
        "first (`env.pool.send` and `recv(min_ready=…)`) helps, and so does a larger step_mul."
    )


def _relief(game_share: float, worker_share: float) -> str:
    if game_share >= 0.5:
        return "Only fewer game steps help: a larger step_mul, if the task bears it."
    if worker_share >= 0.5:
        return "Most of it is the task's own code: see what `observe` and `act` take."
    return "A larger step_mul makes fewer steps of the same game time."


def _about_spares(resets: Sequence[Resets], limit: Limit) -> str:
    with_spares = [one for one in resets if one.spares]
    without = [one for one in resets if not one.spares]
    if not with_spares or not without or not without[0].cost_percent:
        return ""
    bare, spared = without[0], with_spares[0]
    rung = next(iter(bare.cost_percent))
    before, after = bare.cost_percent[rung], spared.cost_percent.get(rung)
    if after is None:
        return ""
    told = (
        f"A batch in which an episode ends takes {before:+.0f} % time without spares and "
        f"{after:+.0f} % with {spared.spares}"
    )
    if before < DEAR_RESET_PERCENT:
        return f"{told}: spares are not worth their memory here, but for failures."
    if after >= before:
        return f"{told}: they do not help here, the cores are taken."
    if limit is Limit.MEMORY:
        return f"{told}: worth one game fewer in the batch, if episodes are short."
    return f"{told}: use them."
