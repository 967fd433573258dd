"""The results of `sc2pool bench`, as data; light, so that bad arguments are answered at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sc2pool.cli.bench.rounds import Rounds


@dataclass(frozen=True)
class Measured:
    """A pool of n games."""

    n: int
    rounds: Rounds
    started_s: float
    """From nothing to the first observation of all games."""
    game_bytes: int
    """Of one game, with its share of the pages that several games map; the median."""
    worker_bytes: int

    @property
    def steps_per_s(self) -> float:
        return self.rounds.steps_per_s

    @property
    def others_cores(self) -> float:
        """How many cores' time other programs took meanwhile."""
        return self.rounds.others_cores

    @property
    def cores_busy(self) -> float:
        """How many cores' time all its processes take together."""
        return self.rounds.cpu_us_per_step() * self.steps_per_s / 1e6

    @property
    def env_bytes(self) -> int:
        """A game and its worker."""
        return self.game_bytes + self.worker_bytes

    def times(self, first: Measured) -> float:
        """How many times the rate of one game of the `first` pool."""
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
    """The median time of each kind of reset; those that the game refused are left out."""
    cost_percent: Mapping[str, float]
    """By how much a batch in which an episode ends is longer than a median one without."""
