"""One training of one learner in one world, recorded step by step.

Rule: a wrapper below the learner records every step of every env, so that steps which an algorithm
drops or hides from its callbacks are counted as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from lateness.learners import Learner
from lateness.worlds import Reading, World


class Recording(VecEnvWrapper):
    """Keeps the reading of each step."""

    def __init__(self, venv: VecEnv, world: World) -> None:
        super().__init__(venv)
        self._read = world.read
        self.readings: list[Reading] = []

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        readings = (self._read(info) for info in infos)
        self.readings += [reading for reading in readings if reading is not None]
        return observations, rewards, dones, infos


@dataclass(frozen=True)
class Row:
    """One line of the table. A tick is a game loop; times are of the game's clock.

    Attributes:
        update_s: how long an update had to be; None for no updates.
        updates: number of updates, and `updated_s` their time in sum.
        gap_ms: from an observation to the action: `p50`, `p99`, `max`.
        lost_ticks: of decision periods that got no new action.
        passed_paused: game loops that passed in pauses, if the pool knows them.
        deaths_unattended: deaths in a step whose action was late by at least a whole period.
        deaths_in_play: the other deaths.
    """

    world: str
    n: int
    learner: str
    update_s: float | None
    period_ms: float
    tick_ms: float
    steps: int
    updates: int
    updated_s: float
    gap_ms: dict[str, float]
    lost_ticks: int
    paused_s: float
    passed_paused: int
    deaths_unattended: int
    deaths_in_play: int
    faults: dict[str, int]

    @property
    def lost_per_update(self) -> float | None:
        """Ticks; None without updates."""
        return self.lost_ticks / self.updates if self.updates else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "lost_per_update": self.lost_per_update}


def measure(
    world: World, learner: Learner, n: int, update_s: float, *, n_steps: int, updates: int
) -> Row:
    """Train for this number of updates, each after `n_steps` steps of every env."""
    games = world.make(n)
    try:
        games.reset()  # launches them; else the first game would wait long for the last
        env = Recording(games, world)
        model = learner.make(world.policy, env, n_steps=n_steps, update_s=update_s)
        model.learn(n_steps * n * updates, callback=learner.callbacks())
        stats = games.stats()
    finally:
        games.close()
    gaps_ms = np.array([reading.gap_s for reading in env.readings]) * 1000
    p50, p99, top = np.percentile(gaps_ms, [50, 99, 100]).tolist()
    deaths = [reading for reading in env.readings if reading.died]
    unattended = sum(reading.lost_ticks > 0 for reading in deaths)
    return Row(
        world=world.name,
        n=n,
        learner=learner.name,
        update_s=update_s if learner.updates else None,
        period_ms=world.period_ticks * world.tick_s * 1000,
        tick_ms=world.tick_s * 1000,
        steps=len(env.readings),
        updates=len(model.updates_s) if learner.updates else 0,
        updated_s=sum(model.updates_s),
        gap_ms={"p50": p50, "p99": p99, "max": top},
        lost_ticks=sum(reading.lost_ticks for reading in env.readings),
        paused_s=stats.pauses.paused_s,
        passed_paused=stats.pauses.loops,
        deaths_unattended=unattended,
        deaths_in_play=len(deaths) - unattended,
        faults=stats.recycles,
    )
