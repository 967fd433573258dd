"""Games in real time get actions during an update, and while the policy is late."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import psutil
import pytest
from async_models import SMALL, Counting, SlowPPO, VerySlowUpdates
from realtime_tasks import TellsLoop
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecMonitor

from sc2pool import AsyncDQN, AsyncPPO, PauseCallback, SubprocSC2VecEnv
from sc2pool.errors import ClosedError, ConfigError

N_STEPS = 6
UPDATES = 3
PERIOD = TellsLoop.step_mul
LOST_WITHOUT = (UPDATES - 1) * (int(VerySlowUpdates.update_s * 22.4) // PERIOD - 1)
"""The minimum number of periods without an action if no actor acts during the updates."""


class Loops(VecEnvWrapper):
    """Records each game's loop at every step, including steps that the learner drops."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.loops: list[list[int]] = []

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        batch = self.venv.step_wait()
        self.loops.append([info["loop"] for info in batch[3]])
        return batch


def periods_lost(make_env: Any, kind: Any, steps: int = UPDATES * N_STEPS, **options: Any) -> Any:
    """The number of periods without an action in a training, for each of two games."""
    env = make_env(n=2)
    recorded = Loops(env)
    if not issubclass(kind, DQN):
        options = {"n_steps": N_STEPS, "n_epochs": 1} | options
    model = kind(
        "MlpPolicy",
        VecMonitor(recorded),
        batch_size=2 * N_STEPS,
        policy_kwargs=dict(SMALL),
        device="cpu",
        **options,
    )
    model.learn(steps * 2)
    assert env.stats().replacements == {}
    return [
        sum((after - before) // PERIOD - 1 for before, after in itertools.pairwise(game))
        for game in zip(*recorded.loops, strict=True)
    ]


@pytest.mark.parametrize("actor", ["thread", "process"])
def test_the_actor_keeps_acting_during_an_update(make_env, actor):
    # On a busy machine, even an actor that acts during updates loses some periods.
    assert max(periods_lost(make_env, VerySlowUpdates, actor=actor)) < LOST_WITHOUT


def test_ppo_loses_the_periods_of_its_updates(make_env):
    assert min(periods_lost(make_env, SlowPPO)) >= LOST_WITHOUT


class SlowUpdatesDQN(AsyncDQN):
    """A DQN that sleeps before each update."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        time.sleep(VerySlowUpdates.update_s)
        super().train(gradient_steps, batch_size)


def test_dqn_keeps_acting_during_an_update(make_env):
    options = {"learning_starts": 0, "train_freq": N_STEPS, "buffer_size": 1000}
    assert max(periods_lost(make_env, SlowUpdatesDQN, **options)) < LOST_WITHOUT


class SlowPolicy(AsyncDQN):
    """A DQN that needs almost three periods to choose an action."""

    def _sample_action(self, *args: Any) -> Any:
        time.sleep(0.5)
        return super()._sample_action(*args)


def test_a_slow_policy_keeps_the_clock_with_late_actions(make_env):
    options = {"learning_starts": 0, "buffer_size": 1000}
    waiting = periods_lost(make_env, SlowPolicy, 6, **options)
    late = periods_lost(make_env, SlowPolicy, 18, late_after_s=0.05, **options)
    assert min(waiting) >= 5
    assert max(late) < min(waiting), "a busy machine loses some, in three times as many steps"


def test_games_in_step_mode(make_env):
    env = make_env(n=2, realtime=False)
    model = AsyncPPO(
        "MlpPolicy", VecMonitor(env), n_steps=32, batch_size=64, policy_kwargs=SMALL, device="cpu"
    )
    model.learn(3 * 64)
    assert env.stats().env_steps >= 3 * 64
    assert env.stats().replacements == {}
    env.reset()
    env.step([0, 0])
    with pytest.raises(ConfigError, match="plays while it learns"):
        model.learn(64, callback=PauseCallback())
    env.step([0, 0])


class ClosesElsewhere(BaseCallback):
    """Closes the env in another thread, as a notebook's next cell does."""

    closing: threading.Thread | None = None

    def _on_step(self) -> bool:
        if self.n_calls == N_STEPS:
            self.closing = threading.Thread(target=self.training_env.close)
            self.closing.start()
        return True


def test_closing_the_env_ends_learn() -> None:
    env = SubprocSC2VecEnv([Counting] * 2)
    model = AsyncPPO("MlpPolicy", env, n_steps=N_STEPS, batch_size=2 * N_STEPS, device="cpu")
    closes = ClosesElsewhere()
    with pytest.raises(ClosedError):
        model.learn(10**9, callback=closes)
    assert closes.closing is not None
    closes.closing.join(30.0)
    assert psutil.Process().children() == []
    assert "sc2pool-actor" not in [thread.name for thread in threading.enumerate()]
