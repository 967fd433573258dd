"""Case *training*: The env steps per second of a whole PPO training, with the resets.

The sides are the pool, SB3's `SubprocVecEnv` over the recipe, and SB3's `SubprocVecEnv` over
`SC2GymEnv`. All sides have the same hyperparameters, task and games. Of all cases that count steps
per second, only this case also counts the time of resets, because resets are part of a training.
The recipe starts a new game for every episode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.baselines.recipe import RecipeEnv
from bench.report import Row, throughput_rows
from bench.settings import Settings
from bench.sides import POOL_TASK, RECIPE, SB3, START_METHOD
from bench.tasks import episode_steps, task_on
from sc2pool.cli.bench.measuring import step_for

CASE = "training"
N = 8
MAP = "MoveToBeacon"
ROLLOUT_STEPS = 128
HYPERPARAMETERS: dict[str, Any] = {"n_steps": ROLLOUT_STEPS, "n_epochs": 4, "seed": 0}
ROLLOUTS = math.ceil(episode_steps(MAP) / ROLLOUT_STEPS)
"""The number of rollouts in a round, so that every env plays at least an episode and a reset."""
OVER_GYM_ENV = f"{SB3} over SC2GymEnv"
OVER_RECIPE = f"{SB3} over the {RECIPE}"


class TrainingSide:
    """A model that learns; in each call of `run` every env plays at least an episode."""

    def __init__(self, make: Callable[[], Any]) -> None:
        from stable_baselines3 import PPO  # noqa: PLC0415

        self._env = make()
        half = ROLLOUT_STEPS * self._env.num_envs // 2
        try:
            self._model = PPO(
                "MlpPolicy", self._env, device="cpu", batch_size=half, **HYPERPARAMETERS
            )
            self._learn(1)
        except BaseException:
            self._env.close()
            raise

    def prepare(self) -> None:
        """Do nothing before a round, because the training continues from round to round."""

    def run(self, seconds: float) -> tuple[int, float]:
        return step_for(partial(self._learn, ROLLOUTS), seconds)

    def _learn(self, rollouts: int) -> int:
        steps = rollouts * ROLLOUT_STEPS * self._env.num_envs
        self._model.learn(steps, reset_num_timesteps=False)
        return int(steps)

    def close(self) -> None:
        self._env.close()


def training(settings: Settings) -> list[Row]:
    """Measure the three sides in turn."""
    rows = []
    recipe, gym = partial(RecipeEnv, MAP, settings.root), partial(gym_env, settings.root)
    for n in settings.ns or (N,):
        makers = {
            POOL_TASK: partial(TrainingSide, partial(pool, n, settings.root)),
            OVER_RECIPE: partial(TrainingSide, partial(subproc, [recipe] * n)),
            OVER_GYM_ENV: partial(TrainingSide, partial(subproc, [gym] * n)),
        }
        setting = f"n={n}, {MAP}, PPO"
        measured = settings.compare(f"{CASE}, {setting}", makers)
        rows += throughput_rows(CASE, setting, measured, {POOL_TASK: (OVER_RECIPE, OVER_GYM_ENV)})
    return rows


def pool(n: int, root: str) -> Any:
    from sc2pool import SubprocSC2VecEnv  # noqa: PLC0415

    return SubprocSC2VecEnv(n=n, task=task_on(MAP), game=root)


def subproc(env_fns: list[Callable[[], Any]]) -> Any:
    from stable_baselines3.common.vec_env import SubprocVecEnv  # noqa: PLC0415

    return SubprocVecEnv(env_fns, START_METHOD)


def gym_env(root: str) -> Any:
    from sc2pool import SC2GymEnv  # noqa: PLC0415

    return SC2GymEnv(task_on(MAP), game=root)
