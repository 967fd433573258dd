"""The results of `sc2pool bench` as data, and advice: the best number of games, and its bottleneck.

Rules: pure functions from figures to sentences; each sentence names its figures. This module is
quick to import, so that bad arguments are reported without a delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sc2pool.cli.bench.measuring import GAME, WORKER, Rounds


@dataclass(frozen=True)
class Measured:
    """A pool of n games."""

    n: int
    rounds: Rounds
    started_s: float
    """Seconds from the constructor to the first observation of all games."""
    game_bytes: int
    """Median memory of a game, with its share of the pages that several games map."""
    worker_bytes: int

    @property
    def steps_per_s(self) -> float:
        return self.rounds.steps_per_s

    @property
    def others_cores(self) -> float:
        """The cores that other programs kept busy during the measurement."""
        return self.rounds.others_cores

    @property
    def cores_busy(self) -> float:
        """The cores that all processes of the pool keep busy."""
        return self.rounds.cpu_us_per_step() * self.steps_per_s / 1e6

    @property
    def env_bytes(self) -> int:
        """Memory of a game and its worker."""
        return self.game_bytes + self.worker_bytes

    def times(self, first: Measured) -> float:
        """This pool's rate as a multiple of one game's rate in the `first` pool."""
        return self.steps_per_s / first.steps_per_s * first.n

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "steps_per_s": self.steps_per_s,
            "others_cores": self.others_cores,
            "cpu_us_per_step": self.rounds.cpu_us_by_role(),
            "cores_busy": self.cores_busy,
            "rounds": [one.as_dict() for one in self.rounds],
        }


@dataclass(frozen=True)
class Resets:
    """The duration of resets with this number of spares."""

    n: int
    spares: int
    reset_ms: Mapping[str, float]
    """The median time of each kind of reset; kinds that the game refused are left out."""
    cost_percent: Mapping[str, float]
    """How much longer a batch takes if an episode ends in it, compared with the median batch."""


GOOD_ENOUGH = 0.95
"""A smaller pool with this share of the best rate is preferred, because it needs less memory."""
CORES_FULL = 0.85
"""The cores are the limit if this share of their time is used; the system uses some of the rest."""
IN_STEP = 0.85
"""If n games reach this share of n times one game's rate, they hardly wait for each other."""
DEAR_RESET_PERCENT = 10.0
"""Spares pay if a reset makes its batch longer by at least this much."""
MUCH_ELSE_CORES = 0.25
"""The advice mentions other programs if they use at least this many cores."""


class Limit(StrEnum):
    """The bottleneck of a pool."""

    MEMORY = "memory"
    CORES = "cores"
    GAME = "the game"
    BATCH = "the slowest of each batch"


def best(measured: Sequence[Measured]) -> Measured:
    """The smallest pool that is about as fast as the fastest pool."""
    fastest = max(one.steps_per_s for one in measured)
    return next(one for one in measured if one.steps_per_s >= GOOD_ENOUGH * fastest)


def limit_of(chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int) -> Limit:
    """The bottleneck of the chosen pool.

    Args:
        chosen: the best of `measured`.
        measured: all pools, the smallest first.
        cores: the number of usable cores.
        free_bytes: free memory before the first game started.
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
    """Sentences for the user; for the arguments see `limit_of`."""
    chosen = best(measured)
    limit = limit_of(chosen, measured, cores, free_bytes)
    said = [f"n={chosen.n} looks best: {chosen.steps_per_s:,.0f} env steps a second."]
    said += [_why(limit, chosen, measured, cores, free_bytes)]
    if chosen.others_cores >= MUCH_ELSE_CORES:
        said += [
            f"Other programs took {chosen.others_cores:.1f} cores during the measurement: repeat "
            "it without them, because the result may be different."
        ]
    return said + [line for line in [_about_spares(resets, limit)] if line]


def _why(
    limit: Limit, chosen: Measured, measured: Sequence[Measured], cores: int, free_bytes: int
) -> str:
    if limit is Limit.CORES:
        cpu_us = chosen.rounds.cpu_us_by_role()
        game, worker = (cpu_us[role] / sum(cpu_us.values()) for role in (GAME, WORKER))
        # The rounded shares must add up to 100 %.
        percents = round(100 * game), round(100 * worker)
        taken = ""
        if chosen.others_cores >= MUCH_ELSE_CORES:
            taken = f", other programs keep {chosen.others_cores:.1f} busy"
        return (
            f"The cores limit the rate: {chosen.cores_busy:.1f} of {cores} work for it{taken}. In "
            f"a step's CPU time, the game takes {percents[0]}%, the worker {percents[1]}% and the "
            f"trainer {100 - sum(percents)}%. {_relief(game, worker)}"
        )
    if limit is Limit.MEMORY:
        fit = max(1, free_bytes // max(1, chosen.env_bytes))
        return (
            f"Memory limits the rate: a game and its worker take {chosen.env_bytes / 1e6:,.0f} MB, "
            f"and {free_bytes / 1e6:,.0f} MB were free, which is enough for about {fit} games, "
            "spares included."
        )
    if limit is Limit.GAME:
        try_more = (
            f"Twice as many may be faster still: try --n {2 * chosen.n}."
            if chosen is measured[-1]
            else "More of them were hardly faster."
        )
        return (
            f"The game itself limits the rate: {chosen.n} games give {chosen.steps_per_s:,.0f} "
            f"steps a second, {chosen.times(measured[0]):.1f} times the rate of "
            f"one, and only {chosen.cores_busy:.1f} of {cores} cores are busy. {try_more}"
        )
    return (
        f"Each batch waits for its slowest game: {chosen.n} games give only "
        f"{chosen.times(measured[0]):.1f} times the rate of one, "
        f"though only {chosen.cores_busy:.1f} of {cores} cores are busy. It helps to step the "
        "games that are ready first (`env.pool.send` and `recv(min_ready=…)`), or to use a "
        "larger step_mul."
    )


def _relief(game_share: float, worker_share: float) -> str:
    if game_share >= 0.5:
        return "Only fewer env steps help: a larger step_mul, if the task permits it."
    if worker_share >= 0.5:
        return "Most of it is the task's own code: measure the time of `observe` and `act`."
    return "A larger step_mul plays the same game time in fewer steps."


def _about_spares(resets: Sequence[Resets], limit: Limit) -> str:
    with_spares = [one for one in resets if one.spares]
    without = [one for one in resets if not one.spares]
    if not with_spares or not without or not without[0].cost_percent:
        return ""
    bare, spared = without[0], with_spares[0]
    kind = next(iter(bare.cost_percent))
    before, after = bare.cost_percent[kind], spared.cost_percent.get(kind)
    if after is None:
        return ""
    measured = (
        f"A batch in which an episode ends takes {before:+.0f} % time without spares and "
        f"{after:+.0f} % with {spared.spares}"
    )
    if before < DEAR_RESET_PERCENT:
        return f"{measured}: spares are worth their memory here only if games fail."
    if after >= before:
        return f"{measured}: they do not help here, because the cores are full."
    if limit is Limit.MEMORY:
        return f"{measured}: with short episodes, a spare is worth more than another game."
    return f"{measured}: use them."
