"""What `sc2pool bench` has measured, as data; light, so that bad arguments are answered at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sc2pool.cli.bench.processes import ROLES
from sc2pool.cli.bench.rounds import Round, cpu_us_per_step, steps_per_s


@dataclass(frozen=True)
class Measured:
    """A pool of n games."""

    n: int
    rounds: tuple[Round, ...]
    started_s: float
    """From nothing to the first observation of all games."""
    game_bytes: int
    """Of one game, its share of what it has in common with the others included; the median."""
    worker_bytes: int
    others_cores: float
    """How many cores' time other programs took meanwhile."""

    @property
    def steps_per_s(self) -> float:
        return steps_per_s(self.rounds)

    def cpu_us_per_step(self, *roles: str) -> float:
        return cpu_us_per_step(self.rounds, *roles)

    @property
    def cores_busy(self) -> float:
        """How many cores' time all its processes take together."""
        return self.cpu_us_per_step() * self.steps_per_s / 1e6

    @property
    def env_bytes(self) -> int:
        """A game and its worker."""
        return self.game_bytes + self.worker_bytes

    def as_dict(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "steps_per_s": self.steps_per_s,
            "cpu_us_per_step": {role: self.cpu_us_per_step(role) for role in ROLES},
            "cores_busy": self.cores_busy,
            "others_cores": self.others_cores,
            "started_s": self.started_s,
            "game_bytes": self.game_bytes,
            "worker_bytes": self.worker_bytes,
            "rounds": [one.as_dict() for one in self.rounds],
        }


@dataclass(frozen=True)
class Resets:
    """What resets take with so many spares."""

    n: int
    spares: int
    rung_ms: Mapping[str, float]
    """The median time of each rung; those that the game refused are left out."""
    cost_percent: Mapping[str, float]
    """By how much a batch in which an episode ends is longer than a median one without."""

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "rung_ms": dict(self.rung_ms), "cost_percent": {**self.cost_percent}}
