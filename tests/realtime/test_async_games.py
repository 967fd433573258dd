"""Games in real time are fed while an update goes on."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from async_models import SMALL, SlowPPO, VerySlowUpdates
from realtime_tasks import TellsLoop
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecMonitor

from sc2pool import AsyncPPO, PauseDuringTraining
from sc2pool.errors import ConfigError

N_STEPS = 6
UPDATES = 3
PERIOD = TellsLoop.step_mul
LOST_WITHOUT = (UPDATES - 1) * (int(VerySlowUpdates.update_s * 22.4) // PERIOD - 1)
"""Decision periods that pass without an action in the updates between two rollouts."""


class Loops(VecEnvWrapper):
    """Notes the loops that the games were in at each step, whoever hears of it."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.loops: list[list[int]] = []

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        batch = self.venv.step_wait()
        self.loops.append([info["loop"] for info in batch[3]])
        return batch


def periods_lost(make_env: Any, kind: Any, **options: Any) -> list[int]:
    """Of each of two games: decision periods that passed without an action in a training."""
    env = make_env(n=2)
    noting = Loops(env)
    model = kind(
        "MlpPolicy",
        VecMonitor(noting),
        n_steps=N_STEPS,
        batch_size=2 * N_STEPS,
        n_epochs=1,
        policy_kwargs=SMALL,
        device="cpu",
        **options,
    )
    model.learn(UPDATES * 2 * N_STEPS)
    assert env.stats()["recycles"] == {}
    return [
        sum((after - before) // PERIOD - 1 for before, after in itertools.pairwise(game))
        for game in zip(*noting.loops, strict=True)
    ]


def test_no_decision_is_missed_in_an_update(make_env):
    # Some are lost all the same where the machine has no time to spare.
    assert max(periods_lost(make_env, VerySlowUpdates)) < LOST_WITHOUT


def test_nor_where_a_process_updates(make_env):
    assert max(periods_lost(make_env, VerySlowUpdates, actor="process")) < LOST_WITHOUT


def test_without_an_actor_they_are_missed(make_env):
    assert min(periods_lost(make_env, SlowPPO)) >= LOST_WITHOUT


def test_games_that_wait(make_env):
    env = make_env(n=2, realtime=False)
    model = AsyncPPO(
        "MlpPolicy", VecMonitor(env), n_steps=32, batch_size=64, policy_kwargs=SMALL, device="cpu"
    )
    model.learn(3 * 64)
    assert env.stats()["env_steps"] >= 3 * 64
    assert env.stats()["recycles"] == {}
    env.reset()
    env.step([0, 0])
    with pytest.raises(ConfigError, match="plays on while it learns"):
        model.learn(64, callback=PauseDuringTraining())
    env.step([0, 0])
