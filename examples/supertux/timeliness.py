"""Measures how well a learner keeps up with a real-time game.

A mean hides rare long delays, so the report has the delays' median, 99th percentile and maximum.
The report also has the number of periods without a new action, and the deaths in these periods.
`Timeliness` wraps the games directly, so it also counts steps that a learner drops.
"""

from __future__ import annotations

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from examples.supertux.env import PERIOD_TICKS
from examples.supertux.game import TICK_S


class Timeliness(VecEnvWrapper):
    """Collects the infos of all steps of `SuperTuxEnv`s in a vector env."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.late_ticks: list[int] = []
        """The delay of each step's action, in ticks."""
        self.deaths = 0
        self.deaths_unattended = 0
        """The number of deaths while an action was late by a period or more."""
        self.goals = 0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        step = self.venv.step_wait()
        for info in step[3]:
            if "late_ticks" in info:  # the delay is missing in the synthetic step after a fault
                self.late_ticks.append(info["late_ticks"])
                self.deaths += info["died"]
                self.deaths_unattended += info["unattended"]
                self.goals += info["goal"]
        return step

    def report(self) -> dict[str, float]:
        """The figures of all steps since the start, with times in ms."""
        late = np.array(self.late_ticks or [0])
        p50, p99 = np.percentile(late, (50, 99)) * TICK_S * 1000
        return {
            "steps": len(self.late_ticks),
            "late p50 (ms)": round(float(p50)),
            "late p99 (ms)": round(float(p99)),
            "late max (ms)": round(float(late.max()) * TICK_S * 1000),
            "periods missed": int((late // PERIOD_TICKS).sum()),
            "deaths": self.deaths,
            "deaths unattended": self.deaths_unattended,
            "goals": self.goals,
        }
